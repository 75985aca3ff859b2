package survive

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
)

// Keys can be changed: a bridge opens the ids of all keys it has, and none of a key it has no more.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("1a", 32), strings.Repeat("2b", 32)
	h := settle(t, `"keys": ["`+one+`"],`, entry{name: "a"})
	tenant := h.Start(t)
	s := h.at("a").NewSession(t, legacy, "{}")
	tenant.Kill(t)
	h.furnish(t, `"keys": ["`+two+`", "`+one+`"],`, entry{name: "a"})
	tenant = h.Start(t)
	next(t, s)
	later := h.at("a").NewSession(t, legacy, "{}")
	tenant.Kill(t)
	h.furnish(t, `"keys": ["`+two+`"],`, entry{name: "a"})
	starts := h.starts(t)
	h.Start(t)
	refused(t, h.at("a"), s.ID, "an id of a key that is there no more")
	h.costless(t, starts)
	next(t, later)
}

// The state directory and the control socket are where the configuration says; the key file is for its owner alone, made once,
// and no bridge prints a key.
func TestKeyFile(t *testing.T) {
	t.Parallel()
	h := settle(t, "")
	h.furnish(t, fmt.Sprintf(`"stateDir": %q, "control": %q,`, h.Dir+"/kept/here", h.Dir+"/own.sock"), entry{name: "a"})
	tenant := h.Start(t)
	path := h.Dir + "/kept/here/keys"
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has mode %v", info.Mode())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for line := range strings.Lines(string(text)) {
		key := strings.TrimSpace(line)
		if key == "" || strings.HasPrefix(key, "#") {
			continue
		}
		keys++
		if out, _, _ := h.Run(t, "status", "--json"); strings.Contains(out, key) || strings.Contains(tenant.Log(), key) {
			t.Error("a key is shown")
		}
	}
	if keys != 1 {
		t.Errorf("the key file has %d keys", keys)
	}
	s := h.at("a").NewSession(t, legacy, "{}")
	tenant.Kill(t)
	h.Start(t)
	next(t, s)
	if again, err := os.ReadFile(path); err != nil || string(again) != string(text) {
		t.Errorf("the key file has changed: %v", err)
	}
	if _, err := os.Stat(h.Dir + "/mcpbridge"); !os.IsNotExist(err) {
		t.Errorf("something is kept in the default place too: %v", err)
	}
}

// Design decision 6: what does not fit into an id is served as well, with a random one, and is 404 after a restart. It costs no
// process then.
func TestHelloTooLargeForID(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "a"})
	tenant := h.Start(t)
	b := h.at("a")
	s := b.NewSession(t, legacy, `{"experimental":{"x":`+e2e.Quote(strings.Repeat("x", 5000))+`}}`)
	if n := next(t, s).N; n != 1 || len(s.ID) > 4096 {
		t.Errorf("counted %d; the id has %d bytes", n, len(s.ID))
	}
	tenant.Kill(t)
	starts := h.starts(t)
	h.Start(t)
	refused(t, b, s.ID, "an id that does not hold its session")
	h.costless(t, starts)
}

// Two bridges with one state directory: the second serves too, says what it cannot keep, and opens the sessions of the first.
func TestTwoBridgesOneStateDir(t *testing.T) {
	t.Parallel()
	one, two := settle(t, ""), settle(t, "")
	shared := fmt.Sprintf(`"stateDir": %q,`, one.Dir+"/state")
	one.furnish(t, shared, entry{name: "a"})
	two.furnish(t, shared, entry{name: "a"})
	one.Start(t)
	s := one.at("a").NewSession(t, legacy, "{}")
	next(t, s)
	second := two.Start(t)
	if !strings.Contains(second.Log(), "stateDir") {
		t.Errorf("the second bridge does not say what is wrong:\n%s", second.Log())
	}
	r := two.at("a").Do(t, "POST", s.Header(), e2e.LegacyCall("1", "next", "{}", ""))
	if got := told(t, r); got.N != 1 {
		t.Errorf("the session was counted as %d at the second bridge", got.N)
	}
	if got := next(t, s); got.N != 2 {
		t.Errorf("the session was counted as %d at the first bridge", got.N)
	}
}
