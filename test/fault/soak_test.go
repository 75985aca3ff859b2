package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/test/internal/rig"
)

// What the soak allows the bridge. Sessions and processes end soon, so that a short run sees many of them come and go.
const (
	soakServers   = 20
	soakProcesses = 24 // limits.processes
	soakEach      = 4  // maxProcesses of a server
	soakActors    = 16
	soakSessions  = 200 // opened and abandoned, at least; half as many in the short run
	soakShort     = 12 * time.Second
	soakIdle      = 1500 * time.Millisecond // sessionIdle
)

// What may be left afterwards beyond what there was before, and why it is not nothing.
const (
	spareRoutines = 4 // a connection of `mcpbridge status` that is being closed
	spareFiles    = 2 // the same
	// Memory: stacks and maps that have grown once stay so. The amount does not grow with the length of the soak: it was
	// 2 to 6 MiB after 20 seconds as after 4 minutes.
	spareMemory = 8 << 20
)

// Acceptance 5: sessions that are opened and abandoned without DELETE, servers half of which crash at random, clients of
// both eras that vanish in the middle of a call. At every look there are no more processes than allowed; no answer is
// wrong and none stays out; afterwards the bridge uses what it used before.
func TestSoak(t *testing.T) {
	needProc(t)
	length, ok := long(t)
	sessions := soakSessions
	if !ok {
		length, sessions = soakShort, soakSessions/2
	}
	s := newSoak(t)
	before := s.rest(t)
	s.run(t, length)
	s.tally.judge(t, sessions)
	after := s.rest(t)
	t.Logf("before %+v, after %+v", before, after)
	if after.routines > before.routines+spareRoutines {
		t.Errorf("goroutines: %d, and %d before", after.routines, before.routines)
	}
	if after.files > before.files+spareFiles {
		t.Errorf("descriptors: %d, and %d before", after.files, before.files)
	}
	if after.memory > before.memory+spareMemory*shadow {
		t.Errorf("resident memory: %d bytes, and %d before", after.memory, before.memory)
	}
	if code := s.tenant.Stop(t); code != 0 {
		t.Errorf("the bridge exits with %d", code)
	}
}

// soak is a bridge under many kinds of load.
type soak struct {
	house  *rig.House
	tenant *rig.Tenant
	names  []string
	files  map[string]string // pid file of each server, which also names it in the process table
	client map[string]*client
	seed   uint64

	tally tally
	mu    sync.Mutex
	old   []*visit // guarded by mu; abandoned sessions that are gone back to
}

// visit is a session at a server.
type visit struct {
	*session
	server string
	last   time.Time // when its last call with an answer began: it has been used since
}

// frail reports whether a server crashes at random: every other one does.
func frail(name string) bool { return strings.HasPrefix(name, "frail") }

func newSoak(t *testing.T) *soak {
	t.Helper()
	dir := t.TempDir()
	s := &soak{files: map[string]string{}, client: map[string]*client{}, seed: rand.Uint64()}
	t.Logf("seed %d", s.seed)
	entries := object{}
	isolations := []string{"", "shared", "request", "principal"}
	for i := range soakServers {
		name := fmt.Sprintf("steady%d", i)
		args := []string{}
		if i%2 == 1 {
			name, args = fmt.Sprintf("frail%d", i), []string{"-life", "400ms"}
		}
		if i%3 == 0 {
			args = append(args, "-dual")
		}
		s.files[name] = filepath.Join(dir, name)
		e := server(t, append(args, "-pidfile", s.files[name])...).with(object{"maxProcesses": soakEach, "idleStop": "500ms",
			"restart": object{"initial": "20ms", "max": "500ms", "resetAfter": "1s"}})
		if isolation := isolations[i/2%len(isolations)]; isolation != "" {
			e["isolation"] = isolation
		}
		entries[name] = e
		s.names = append(s.names, name)
	}
	s.house = house(t, entries, object{"limits": object{"processes": soakProcesses, "sessionIdle": soakIdle.String(), "queueWait": "5s"}})
	s.tenant = s.house.Start(t)
	for _, name := range s.names {
		s.client[name] = newClient(t, s.house.URL(name))
	}
	return s
}

// use is what a bridge at rest uses.
type use struct{ routines, files, memory int }

// rest uses every server once in each era, waits until all sessions have expired and all servers have been stopped, and
// looks at what the bridge uses then.
func (s *soak) rest(t *testing.T) use {
	t.Helper()
	for _, name := range s.names {
		c := s.client[name]
		for _, open := range []func() caller{func() caller { return modern{c} }, func() caller { return s.opened(t, name) }} {
			eventually(t, patience, name+" is served", func() bool { return echo(t.Context(), open(), "1", "rest").kind == result })
		}
		c.http.CloseIdleConnections()
	}
	eventually(t, 2*soakIdle+2*ladder, "all sessions have expired and all servers have ended", func() bool {
		return len(servers(s.tenant.Pid)) == 0 && len(zombies(s.tenant.Pid)) == 0 && statusOf(t, s.house).Bridge.Sessions == 0
	})
	var u use
	u.files, u.memory = usage(t, s.tenant.Pid)
	u.routines = statusOf(t, s.house).Bridge.Goroutines
	return u
}

// opened opens a session at a server that may have to be asked more than once.
func (s *soak) opened(t *testing.T, name string) (opened *session) {
	t.Helper()
	eventually(t, patience, "a session at "+name, func() bool {
		opened, _ = s.client[name].initialize(t.Context())
		return opened != nil
	})
	return opened
}

// run has all actors act for a time, and looks at the processes all the while.
func (s *soak) run(t *testing.T, length time.Duration) {
	t.Helper()
	over, end := context.WithTimeout(t.Context(), length)
	defer end()
	var actors, watch sync.WaitGroup
	for i := range soakActors {
		actors.Go(func() {
			a := &actor{soak: s, rand: rand.New(rand.NewPCG(s.seed, uint64(i))), name: fmt.Sprint("actor ", i)}
			for over.Err() == nil {
				a.act()
			}
		})
	}
	stopped := make(chan struct{})
	watch.Go(func() { s.watch(t, stopped) })
	actors.Wait()
	close(stopped)
	watch.Wait()
}

// watch counts processes until it is told to stop.
func (s *soak) watch(t *testing.T, stop <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	looks, most := 0, 0
	for {
		select {
		case <-stop:
			t.Logf("at most %d processes in %d looks", most, looks)
			if most < soakProcesses/2 {
				t.Errorf("only %d processes at once: the limits were not tried", most)
			}
			return
		case <-tick.C:
		}
		list := together(s.tenant.Pid)
		if most = max(most, len(list)); len(list) > soakProcesses {
			t.Errorf("%d processes, %d are allowed: %v", len(list), soakProcesses, list)
		}
		for name, file := range s.files {
			if n := named(list, file); n > soakEach {
				t.Errorf("%d processes of %s, %d are allowed", n, name, soakEach)
			}
		}
		if looks++; looks%40 == 0 {
			if n := statusOf(t, s.house).Bridge.Processes; n > soakProcesses {
				t.Errorf("status tells of %d processes, %d are allowed", n, soakProcesses)
			}
		}
	}
}

// together are servers that run at the same moment: those of one look that are still there after it.
func together(bridge int) []process {
	return slices.DeleteFunc(servers(bridge), func(p process) bool { return !p.lives() })
}

// named counts the processes of the server with this pid file.
func named(list []process, file string) (n int) {
	for _, p := range list {
		if strings.HasSuffix(p.args, " "+file) {
			n++
		}
	}
	return n
}
