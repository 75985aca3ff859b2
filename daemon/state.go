package daemon

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"mcpbridge/bridge/seal"
	"mcpbridge/bridge/session"
	"mcpbridge/bridge/session/facts"
)

// state is what the bridge keeps across its own end (design section 8).
type state struct {
	ring  *seal.Ring
	facts session.Facts // nil if nothing is kept
	db    *facts.DB
	logs  string // folder of the servers' logs, "" for none
}

// openState opens the state directory. A bridge that cannot keep its state serves all the same and says what is lost; only keys
// that are there and cannot be used stop it, because going on without would end every session there is.
func (d *Daemon) openState() (*state, error) {
	s := &state{}
	dir := d.opt.StateDir
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			d.log.Warn().Err(err).Msg("no state is kept: sessions will end with the bridge; name another folder with stateDir")
			dir = ""
		}
	}
	d.warnOpen(dir)
	var err error
	if s.ring, err = d.keys(dir); err != nil {
		return nil, err
	}
	if dir == "" {
		return s, nil
	}
	db, warning, err := facts.Open(filepath.Join(dir, "sessions.db"))
	if warning != nil {
		d.log.Warn().Err(warning).Msg("session facts")
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("what changes about sessions is not kept, nor are logs of servers: is another bridge using the same state directory? give each its own stateDir")
		return s, nil
	}
	s.db, s.facts, s.logs = db, db, filepath.Join(dir, "logs")
	return s, nil
}

// warnOpen says when others may write to the state directory: they could put keys of their own there.
func (d *Daemon) warnOpen(dir string) {
	st, err := os.Stat(dir)
	if err == nil && runtime.GOOS != "windows" && st.Mode().Perm()&0o022 != 0 {
		d.log.Warn().Str("folder", dir).Str("mode", st.Mode().Perm().String()).Msg("others may write to the state directory; run chmod 700 on it")
	}
}

// keys returns the key ring: from the configuration, from the state directory, or one for this run only.
func (d *Daemon) keys(dir string) (*seal.Ring, error) {
	if list := d.opt.Config.Keys; len(list) > 0 {
		keys := make([][32]byte, len(list))
		for i, text := range list {
			var err error
			if keys[i], err = seal.ParseKey(text); err != nil {
				return nil, fmt.Errorf("cannot use key %d of the setting keys: %w", i+1, err)
			}
		}
		return seal.NewRing(keys...)
	}
	if dir != "" {
		return seal.LoadRing(filepath.Join(dir, "keys"))
	}
	var key [32]byte
	_, _ = rand.Read(key[:])
	return seal.NewRing(key)
}

func (s *state) close() {
	if s.db != nil {
		_ = s.db.Close()
	}
}
