package config

import (
	"time"
)

// Defaults of the file. Sizes are bytes.
const (
	DefaultListen       = "127.0.0.1:8420"
	DefaultBodyBytes    = 64 << 20
	DefaultBodyTotal    = 512 << 20
	DefaultLineBytes    = 64 << 20
	DefaultSessions     = 1000
	DefaultProcesses    = 64
	DefaultMaxProcesses = 8
	DefaultIdleStop     = 10 * time.Minute
	DefaultTimeout      = 5 * time.Minute
	DefaultStartTimeout = time.Minute
	DefaultSessionIdle  = 30 * time.Minute
	DefaultSessionLife  = 168 * time.Hour
	DefaultQueueWait    = 10 * time.Second
	DefaultShutdown     = 3 * time.Second
	DefaultLogMaxMB     = 10
	DefaultLogKeep      = 5
)

// Config is a whole file after expansion and with defaults filled in.
type Config struct {
	Listen         []string // "host:port" on loopback or "unix:///path"
	AllowedHosts   []string
	AllowedOrigins []string
	Limits         Limits
	Log            Log
	StateDir       string   // absolute path of the folder for what outlives a run; "" for DefaultStateDir
	Control        string   // absolute path of the control socket, at most MaxControlBytes long; "" for DefaultControl
	Keys           []string // master keys, the first is used for what is new; secret. None: the one of the state folder
	Servers        []Server // in the order of the file
}

// Limits bound what all servers together may use.
type Limits struct {
	BodyBytes int // longest HTTP body taken
	BodyTotal int // what all bodies of requests under way may hold together
	LineBytes int // longest line of a stdio server taken
	Sessions  int // legacy sessions open at once
	Processes int // child processes alive at once

	SessionIdle time.Duration // a legacy session that is not used for so long ends
	SessionLife time.Duration // no legacy session lives longer, used or not
	QueueWait   time.Duration // how long a request may wait for a process when the caps are reached
	Shutdown    time.Duration // what open requests get when the bridge stops
}

// Log says where the bridge's own log goes.
type Log struct {
	Level string // trace, debug, info, warn or error
	File  string // "" for stderr
	MaxMB int    // size at which a new file is begun
	Keep  int    // old files kept
}

// Isolation values: who shares a link to the server. "" leaves it to the front: session behind legacy ones, principal
// behind modern ones.
const (
	IsolationSession   = "session"
	IsolationPrincipal = "principal"
	IsolationShared    = "shared"
	IsolationRequest   = "request"
)

// Way is how a remote server is reached. Paths are absolute.
type Way struct {
	Proxy      string // URL of a proxy, "" for what the environment says
	CAFile     string // PEM certificates that are trusted beside those of the system
	ClientCert string // PEM certificate that is shown to the server, with ClientKey
	ClientKey  string
	Insecure   bool // the server's certificate is not checked
}

// TransportSSE is the HTTP+SSE transport of 2024-11-05.
const TransportSSE = "sse"

// Server is one entry of mcpServers. Either Command or URL is set, unless Problem is.
type Server struct {
	Name       string // 1 to MaxNameRunes characters, see Path; any text if Problem is set
	Command    string
	Args       []string
	Env        map[string]string
	Cwd        string
	InheritEnv bool
	Disabled   bool

	URL       string
	Headers   map[string]string
	AllowHTTP bool   // a plain http URL beyond loopback is meant
	Transport string // of URL: "" finds out, TransportSSE tries that first
	Way       Way    // to URL

	Isolation    string
	Lazy         *bool // nil leaves it to the bridge
	IdleStop     time.Duration
	MaxProcesses int
	Spare        int // processes kept started ahead of use
	Required     bool
	Timeout      time.Duration // of one request
	StartTimeout time.Duration // from the start of a process to its first answer
	Protocol     string        // auto, modern or legacy
	Restart      Restart
	Mirror       map[string]map[string]string // tool, then property path, then header name without prefix
	Cache        Cache
	LogLevel     string // least severe MCP log level asked of the server

	Ask          Ask
	Profile      []string // features the server is told of, nil for those of each client
	OverDeclare  bool     // all features, also those a client has not
	Roots        []string // file URIs, for clients without roots
	SSE          bool     // served over HTTP+SSE too
	RestartReads bool     // reads and prompts whose call is gone are run again

	// Problem is why this entry cannot be used, nil if it can. It is an Errors.
	Problem error

	shown shown
}

// Restart is how a server that died is started again.
type Restart struct {
	Initial    time.Duration // first pause
	Max        time.Duration // longest pause
	ResetAfter time.Duration // uptime after which the pauses begin anew
	Breaker    string        // "N/DURATION": after N deaths within the time nothing is started for Max

	BreakerCount  int           // N of Breaker
	BreakerWindow time.Duration // DURATION of Breaker
}

// Cache is the caching hint put on results of servers that give none (CCH-02).
type Cache struct {
	TTLMs int
	Scope string // private or public
}

// shown keeps the text of members before expansion, so that a printed configuration holds no secrets.
type shown struct {
	command, cwd, url, proxy string
	args                     []string
	offset                   int // of the entry in the file
}

func newConfig() *Config {
	return &Config{
		Listen: []string{DefaultListen},
		Limits: Limits{
			BodyBytes: DefaultBodyBytes, BodyTotal: DefaultBodyTotal, LineBytes: DefaultLineBytes,
			Sessions: DefaultSessions, Processes: DefaultProcesses,
			SessionIdle: DefaultSessionIdle, SessionLife: DefaultSessionLife,
			QueueWait: DefaultQueueWait, Shutdown: DefaultShutdown,
		},
		Log: Log{Level: "info", MaxMB: DefaultLogMaxMB, Keep: DefaultLogKeep},
	}
}

func newServer(name string) Server {
	return Server{
		Name:         name,
		IdleStop:     DefaultIdleStop,
		MaxProcesses: DefaultMaxProcesses,
		Timeout:      DefaultTimeout,
		StartTimeout: DefaultStartTimeout,
		Protocol:     "auto",
		Restart: Restart{
			Initial: 500 * time.Millisecond, Max: 30 * time.Second, ResetAfter: 30 * time.Second,
			Breaker: "5/60s", BreakerCount: 5, BreakerWindow: time.Minute,
		},
		Cache:    Cache{Scope: "private"},
		LogLevel: "info",
		Ask:      newAsk(), RestartReads: true, SSE: true,
	}
}

// ForCommand is the configuration of `serve -- COMMAND ARGS...`: one server named default. argv has at least one element;
// nothing in it is expanded.
func ForCommand(argv []string) *Config {
	c := newConfig()
	s := newServer("default")
	s.Command, s.Args = argv[0], argv[1:]
	s.shown = shown{command: s.Command, args: s.Args}
	c.Servers = []Server{s}
	return c
}

// ForDemo is the configuration of `serve` with nothing configured: the demo server of the program at path self.
func ForDemo(self string) *Config { return ForCommand([]string{self, "demo-server"}) }
