package back

import (
	"sync"
	"time"

	"mcpbridge/bridge/mcp"
)

// verdictLife is how long it is remembered that a server lacks an era: a stale verdict never fails by itself (VER-07).
const verdictLife = time.Hour

// Verdict remembers which eras a server turned out not to speak. It belongs to a server's configuration and is shared by
// all its links. The zero value knows nothing.
type Verdict struct {
	pinned mcp.Era

	mu    sync.Mutex
	lacks [3]time.Time // guarded by mu; by era: when it was found missing
	offer mcp.Version  // guarded by mu; the legacy revision it named in place of a modern one
}

// Pin names the era by configuration: nothing is probed (VER-26). EraUnknown finds out. It is called before the first use.
func (v *Verdict) Pin(e mcp.Era) { v.pinned = e }

// order returns the eras to try for a front that wants one, and the legacy revision to offer, "" if none is known.
func (v *Verdict) order(want mcp.Era) ([]mcp.Era, mcp.Version) {
	if v.pinned != mcp.EraUnknown {
		return []mcp.Era{v.pinned}, ""
	}
	other := mcp.Legacy
	if want == mcp.Legacy {
		other = mcp.Modern
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if known(v.lacks[want]) {
		return []mcp.Era{other, want}, v.offer
	}
	return []mcp.Era{want, other}, ""
}

func known(t time.Time) bool { return !t.IsZero() && time.Since(t) < verdictLife }

// learn notes that the server speaks got, and not the eras that were refused; offer is the revision it named.
func (v *Verdict) learn(got mcp.Era, missing []mcp.Era, offer mcp.Version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range missing {
		v.lacks[e] = time.Now()
	}
	v.lacks[got] = time.Time{}
	if offer != "" {
		v.offer = offer
	}
}
