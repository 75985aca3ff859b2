package session_test

import (
	"bytes"
	"crypto/rand"
	"regexp"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/seal"
	"mcpbridge/bridge/session"
)

// A sealed id is visible ASCII, shows nothing of what it carries, and is never the same (HTTP-L-18, SEC-02).
func TestSealedIDs(t *testing.T) {
	st := session.NewStore(sealing(t, nil))
	fit := regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	seen := map[string]bool{}
	for range 100 {
		s := shake(t, st, "alice")
		id := s.ID()
		if !fit.MatchString(id) || len(id) > session.MaxID || seen[id] || seen[s.Short()] {
			t.Fatalf("id %q, %q", id, s.Short())
		}
		if strings.Contains(id, s.Short()) {
			t.Fatal("the id shows the name in logs")
		}
		seen[id], seen[s.Short()] = true, true
	}
}

// n bytes of id are sealed; n+1 give a random id, whose session ends with the store.
func TestMaxID(t *testing.T) {
	for name, tc := range map[string]struct {
		params int
		sealed bool
	}{"n": {2996, true}, "n+1": {2997, false}, "huge": {1 << 20, false}, "none": {0, false}} {
		st := session.NewStore(sealing(t, nil))
		s := st.New("alice", nil, true)
		h := session.Hello{Version: mcp.V20250618}
		if frame := len(`{"x":""}`); tc.params > 0 {
			h.Params = []byte(`{"x":"` + strings.Repeat("x", tc.params-frame) + `"}`)
		}
		if err := st.Add(s, h); err != nil {
			t.Fatal(err)
		}
		if name == "n" && len(s.ID()) != session.MaxID || len(s.ID()) > session.MaxID {
			t.Errorf("%s: id of %d bytes", name, len(s.ID()))
		}
		if st.Find(s.ID(), "alice") != s {
			t.Errorf("%s: not live", name)
		}
		got, _ := reopen(t, session.NewStore(sealing(t, nil)), s.ID(), "alice")
		if (got != nil) != tc.sealed {
			t.Errorf("%s: reopened %v", name, got != nil)
		}
		if got != nil && string(got.InitParams()) != string(h.Params) {
			t.Errorf("%s: other params", name)
		}
	}
}

// The handshake is kept without the request it came in.
func TestHelloIsCopied(t *testing.T) {
	body := []byte(`{"capabilities":{"roots":{}},"clientInfo":{"name":"c"}}`)
	roots, info := body[bytes.IndexByte(body[1:], '{')+1:][:12], body[bytes.LastIndexByte(body, '{'):][:12]
	for _, h := range []session.Hello{{Params: body}, {ClientInfo: info, Capabilities: roots}} {
		st := session.NewStore(sealing(t, nil))
		s := st.New("alice", nil, true)
		if err := st.Add(s, h); err != nil {
			t.Fatal(err)
		}
		if &s.Capabilities()[0] == &roots[0] || &s.ClientInfo()[0] == &info[0] || string(s.Capabilities()) != `{"roots":{}}` || string(s.ClientInfo()) != `{"name":"c"}` {
			t.Errorf("capabilities %s, info %s", s.Capabilities(), s.ClientInfo())
		}
	}
}

// Nothing opens a session but its id.
func FuzzID(f *testing.F) {
	var key [32]byte // of each fuzzing process its own, and so are the ids
	_, _ = rand.Read(key[:])
	keys, err := seal.NewRing(key)
	if err != nil {
		f.Fatal(err)
	}
	cfg := session.Config{Endpoint: "files", Sealer: keys.Box("session id")}
	id := shake(f, session.NewStore(cfg), "alice").ID()
	for _, seed := range []string{"", id, id[1:], id + "A", strings.ToUpper(id), "====", strings.Repeat("A", 4097)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if s, _ := reopen(t, session.NewStore(cfg), text, "alice"); (s != nil) != (text == id) {
			t.Errorf("%q opens a session: %v", text, s != nil)
		}
	})
}
