package daemon

import (
	"net/http"
	"strconv"
	"time"

	"mcpbridge/bridge/back"
	"mcpbridge/bridge/front"
	"mcpbridge/procman"
)

// heard has what a back's processes write to their stderr taken down.
func (e *endpoint) heard(c back.StdioConfig) back.StdioConfig {
	long := false
	c.Spec.Stderr = func(pid int, line []byte) {
		if e.file != nil {
			e.file.Line(strconv.Itoa(pid), line)
		}
		if !long { // of an overlong line the bridge's own log has the beginning: a secret might lie across a cut
			e.log.stderr(pid, line)
		}
		long = len(line) == procman.MaxStderrLine
	}
	return c
}

// process takes an event of one of the server's supervisors.
func (e *endpoint) process(ev procman.Event) {
	e.log.process(ev)
	if ev.Exit != nil {
		e.lastExit.Store(&ending{"process " + strconv.Itoa(ev.Pid) + " " + e.log.mask.Text(ev.Exit.String()), time.Now()})
	}
	if ev.Name == procman.EventCrashed {
		e.restarts.Add(1)
	}
}

// record takes what there is to say about a request that was answered.
func (e *endpoint) record(r front.Record) {
	if r.Method != "" {
		e.calls.Add(1)
	}
	if r.Err != nil {
		e.failed.Add(1)
	}
	e.log.request(r)
}

// counted has an endpoint know how many requests are under way.
func (e *endpoint) counted(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // streams of a session's own end by themselves when the endpoint refuses
			h.ServeHTTP(w, r)
			return
		}
		e.inflight.enter()
		defer e.inflight.leave()
		h.ServeHTTP(w, r)
	})
}
