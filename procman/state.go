package procman

import "time"

// State is where a [Supervisor] stands; the package comment has the diagram.
type State uint8

// The states.
const (
	Idle      State = iota // no process, a start may begin at once
	Starting               // a spawn is under way
	Running                // a process runs
	Backoff                // no process, the next start has to wait
	Stopping               // the process is on the stop ladder
	Closed                 // for good
	CrashLoop              // Idle or Backoff while the breaker is open
)

var stateNames = [...]string{"idle", "starting", "running", "backoff", "stopping", "closed", "crash-loop"}

// String is the state in lower case.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// transitions is the table of allowed moves: from each state to the states in its row. CrashLoop is not among them: the
// breaker is no part of one supervisor, so the state is looked up when it is asked for.
var transitions = [...][]State{
	Idle:     {Starting, Closed},
	Starting: {Running, Backoff, Closed},
	Running:  {Idle, Backoff, Stopping},
	Backoff:  {Idle, Closed},
	Stopping: {Idle, Backoff, Closed},
	Closed:   {},
}

// Status is what a supervisor knows about its process.
type Status struct {
	// Pid of the current process, 0 without one.
	Pid int
	// Restarts counts the starts that followed an unexpected end.
	Restarts int
	// LastExit is how the last process ended, nil if none has.
	LastExit *Exit
	// LastErr is why the last start failed, or why the process was rejected; nil after a successful start.
	LastErr error
	// Since is when the state was entered.
	Since time.Time
	// NextStart is when a start may happen in Backoff and CrashLoop, zero if that depends on a start under way; zero in
	// the other states.
	NextStart time.Time
	// Held is what a start would be told in Backoff and CrashLoop, nil in the other states.
	Held *HeldError
}

// Names of events.
const (
	EventStarted     = "started"      // a process runs
	EventStartFailed = "start-failed" // Err says why, Delay until the next try
	EventCrashed     = "crashed"      // unexpected end: Exit, Delay until the next start
	EventCrashLoop   = "crash-loop"   // that failure opened the breaker: Delay until the next start
	EventRecovered   = "recovered"    // a process has come up, which closed the breaker
	EventRejected    = "rejected"     // the process is no good: Err says why
	EventEnded       = "ended"        // forgiven end, or that of a process nobody used yet: Exit, Delay until the next start
	EventForgiven    = "forgiven"     // the end reported before was expected
	EventStopping    = "stopping"     // on the ladder
	EventStopped     = "stopped"      // ladder done: Exit, Err if something survived, Delay after a rejection
	EventClosed      = "closed"
)

// Event reports what happened to a supervised process.
type Event struct {
	Name  string // one of the Event constants
	State State  // after the event
	Pid   int
	Exit  *Exit
	Err   error
	Delay time.Duration
}
