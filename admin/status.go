package admin

import "time"

// Status is the answer to GET /v1/status. Times are RFC 3339, uptimes seconds, memory resident bytes. Texts hold no secrets
// (SEC-09); the Backend has masked them.
type Status struct {
	Bridge  Bridge   `json:"bridge"`
	Servers []Server `json:"servers"`
}

// Bridge is the state of the bridge itself.
type Bridge struct {
	Version      string         `json:"version"`
	Pid          int            `json:"pid"`
	StartedAt    time.Time      `json:"startedAt"`
	Uptime       float64        `json:"uptime"`
	Listening    []string       `json:"listening"`
	Draining     bool           `json:"draining"`     // new work is refused
	Sessions     int            `json:"sessions"`     // of all servers
	Processes    int            `json:"processes"`    // of all servers, those being started or ended included
	ProcessLimit int            `json:"processLimit"` // of all servers
	MemoryBytes  uint64         `json:"memoryBytes"`  // 0 where it cannot be told
	Goroutines   int            `json:"goroutines"`
	ConfigFile   string         `json:"configFile,omitempty"` // "" if a command is served
	LastReload   *ReloadOutcome `json:"lastReload,omitempty"` // nil if there was none
}

// ReloadOutcome is how the last reload went.
type ReloadOutcome struct {
	At    time.Time `json:"at"`
	OK    bool      `json:"ok"`
	Error string    `json:"error,omitempty"` // why nothing was changed
}

// Server is the state of one configured server.
type Server struct {
	Name     string   `json:"name"`
	URLs     []string `json:"urls"`
	State    string   `json:"state"` // the most telling state of its processes, or "broken", "missing"; of a remote server "idle", "connected", "unreachable" or "unauthorized"
	Required bool     `json:"required"`
	Ready    bool     `json:"ready"`
	// Problem is why an entry is left out or cannot run, "" if it can.
	Problem string `json:"problem,omitempty"`
	// Remote is the address of a remote server, without secrets; "" of a local one. Its Processes are connections.
	Remote      string    `json:"remote,omitempty"`
	Isolation   string    `json:"isolation,omitempty"`
	Processes   []Process `json:"processes"`
	Restarts    int       `json:"restarts"`
	LastExit    *Exit     `json:"lastExit,omitempty"`
	LastError   string    `json:"lastError,omitempty"`
	Sessions    int       `json:"sessions"`
	Calls       int64     `json:"calls"` // all there ever were
	CallsFailed int64     `json:"callsFailed"`
	Waiting     int       `json:"waiting"` // requests that wait for a process
	Parked      int       `json:"parked"`  // calls that wait for a modern client to answer a question, or for the server behind one
}

// States of a [Process].
const (
	StateIdle      = "idle"
	StateStarting  = "starting"
	StateRunning   = "running"
	StateBackoff   = "backoff"
	StateStopping  = "stopping"
	StateCrashLoop = "crash-loop"
	StateClosed    = "closed"
)

// Process is one process of a server, or the place of one that does not run now.
type Process struct {
	Pid         int        `json:"pid,omitempty"` // 0 if none runs
	State       string     `json:"state"`
	StartedAt   time.Time  `json:"startedAt,omitzero"`
	Uptime      float64    `json:"uptime"`
	Restarts    int        `json:"restarts"`
	MemoryBytes uint64     `json:"memoryBytes"`
	Era         string     `json:"era,omitempty"`     // "legacy" or "modern", once it is known
	Version     string     `json:"version,omitempty"` // negotiated protocol revision
	Calls       int        `json:"calls"`             // open now
	Serves      string     `json:"serves"`            // "session", "principal", "shared", "request" or "spare"
	LastExit    *Exit      `json:"lastExit,omitempty"`
	NextStart   *time.Time `json:"nextStart,omitempty"` // when it is started again, nil if nothing waits for that
}

// Exit is how a process ended.
type Exit struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// Reloaded is what a reload changed: names of servers, and settings that wait for a restart of the bridge.
type Reloaded struct {
	Added        []string `json:"added"`
	Changed      []string `json:"changed"`
	Removed      []string `json:"removed"`
	Unchanged    []string `json:"unchanged"`
	NeedsRestart []string `json:"needsRestart"`
}

// filled returns s with empty lists in place of nil ones, so that scripts need not tell null from [].
func (s Status) filled() Status {
	s.Bridge.Listening = list(s.Bridge.Listening)
	servers := make([]Server, len(s.Servers))
	for i, one := range s.Servers {
		one.URLs, one.Processes = list(one.URLs), list(one.Processes)
		servers[i] = one
	}
	s.Servers = servers
	return s
}

func (r Reloaded) filled() Reloaded {
	return Reloaded{list(r.Added), list(r.Changed), list(r.Removed), list(r.Unchanged), list(r.NeedsRestart)}
}

func list[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
