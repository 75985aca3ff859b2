package procman

import (
	"errors"
	"os"
	"testing"
)

// What a start would say is known without one (cases 101, 102).
func TestCheck(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(Spec{Name: "good", Command: self}); err != nil {
		t.Errorf("this program cannot be started: %v", err)
	}
	for _, bad := range []string{"", "no-such-command-anywhere", self + "-missing"} {
		err := Check(Spec{Name: "bad", Command: bad, Env: os.Environ()})
		var start *StartError
		if !errors.As(err, &start) || !start.Permanent {
			t.Errorf("%q: %v, want a permanent start error", bad, err)
		}
	}
}
