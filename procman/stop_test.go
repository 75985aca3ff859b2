package procman_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/procman"
)

// STD-01, case 26: stdin first, then terminate, then kill, each after its grace and not earlier.
func TestStopLadder(t *testing.T) {
	tests := []struct {
		name   string
		onStep map[string]time.Duration
		grace  procman.Grace
		steps  []string
		took   time.Duration
		failed string
	}{
		{name: "ends at EOF", onStep: map[string]time.Duration{"eof": time.Second}, steps: []string{"eof@0s"}, took: time.Second},
		{name: "last moment of EOF grace", onStep: map[string]time.Duration{"eof": 2*time.Second - 1}, steps: []string{"eof@0s"}, took: 2*time.Second - 1},
		{name: "after EOF grace", onStep: map[string]time.Duration{"eof": 2*time.Second + 1}, steps: []string{"eof@0s", "terminate@2s"}, took: 2*time.Second + 1},
		{name: "ends at TERM", onStep: map[string]time.Duration{"terminate": time.Second}, steps: []string{"eof@0s", "terminate@2s"}, took: 3 * time.Second},
		{name: "ends at KILL", onStep: map[string]time.Duration{"kill": 0}, steps: []string{"eof@0s", "terminate@2s", "kill@5s"}, took: 5 * time.Second},
		{name: "never ends", steps: []string{"eof@0s", "terminate@2s", "kill@5s"}, took: 7 * time.Second, failed: "cannot stop process 7"},
		{name: "own graces", grace: procman.Grace{EOF: time.Second, Term: time.Second, Kill: time.Second}, steps: []string{"eof@0s", "terminate@1s", "kill@2s"}, took: 3 * time.Second, failed: "process 7"},
		{name: "no EOF grace", grace: procman.Grace{EOF: -1}, onStep: map[string]time.Duration{"terminate": time.Second}, steps: []string{"eof@0s", "terminate@0s"}, took: time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newFakeProc(7, tt.onStep)
				begin := time.Now()
				err := procman.Stop(t.Context(), p, tt.grace)
				if took := time.Since(begin); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if (err == nil) != (tt.failed == "") || err != nil && !strings.Contains(err.Error(), tt.failed) {
					t.Errorf("error %v, want %q", err, tt.failed)
				}
				if got := p.did(); !slices.Equal(got, tt.steps) {
					t.Errorf("steps %v, want %v", got, tt.steps)
				}
			})
		})
	}
}

func TestStopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("drained long enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 3*time.Second, cause)
		defer cancel()
		p := newFakeProc(7, nil)
		if err := procman.Stop(ctx, p, procman.Grace{}); !errors.Is(err, cause) {
			t.Errorf("error %v, want the context's cause", err)
		}
		if want := []string{"eof@0s", "terminate@2s"}; !slices.Equal(p.did(), want) {
			t.Errorf("steps %v, want %v", p.did(), want)
		}
	})
}

func TestStopOfAnEndedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := newFakeProc(7, nil)
		p.crash()
		if err := procman.Stop(ctx, p, procman.Grace{}); err != nil {
			t.Errorf("a process that is gone is stopped, whatever the context: %v", err)
		}
	})
}

func TestStopNamesSurvivors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProc(7, nil)
		p.end(procman.Exit{Survivors: []int{81, 82}})
		err := procman.Stop(t.Context(), p, procman.Grace{})
		if err == nil || !strings.Contains(err.Error(), "[81 82]") {
			t.Errorf("error %v does not name the survivors", err)
		}
	})
}

// Where a process cannot be asked to end, waiting for it to obey is waste.
func TestStopSkipsWhatIsUnsupported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakeProc(7, map[string]time.Duration{"kill": 0})
		p.extra = errors.ErrUnsupported
		if err := procman.Stop(t.Context(), p, procman.Grace{}); err != nil {
			t.Fatal(err)
		}
		if want := []string{"eof@0s", "kill@2s"}; !slices.Equal(p.did(), want) {
			t.Errorf("steps %v, want %v", p.did(), want)
		}
	})
}
