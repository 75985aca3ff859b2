package survive

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// A change is noticed by itself also in a folder where other files change all the time, a log for one.
func TestFileInBusyFolder(t *testing.T) {
	t.Parallel()
	h := settle(t, "", entry{name: "b", flags: []string{"-mark", "old"}})
	h.Start(t)
	if _, why := serves(h.at("b"), "old"); why != "" {
		t.Error(why)
	}
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 0; ; n++ {
			_ = os.WriteFile(h.Dir+"/other.log", fmt.Append(nil, n), 0o600)
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	defer func() {
		close(stop)
		<-over
	}()
	h.furnish(t, "", entry{name: "b", flags: []string{"-mark", "new"}})
	why := ""
	eventually(t, "the change is noticed", func() bool { _, why = serves(h.at("b"), "new"); return why == "" })
}

// A change back to the text that the bridge was started with is a change too, however soon it comes.
func TestFileBackToEarlierText(t *testing.T) {
	t.Parallel()
	old, changed := entry{name: "b", flags: []string{"-mark", "old"}}, entry{name: "b", flags: []string{"-mark", "new"}}
	h := settle(t, "", old)
	tenant := h.Start(t)
	var why string
	serving := func(mark string) func() bool {
		return func() bool { _, why = serves(h.at("b"), mark); return why == "" }
	}
	eventually(t, "the first state serves", serving("old"))
	h.furnish(t, "", changed)
	tenant.Signal(t, hangup)
	eventually(t, "the change is made at the signal", serving("new"))
	h.furnish(t, "", old)
	eventually(t, "the change back is noticed", serving("old"))
}
