package procman

import "io"

// MarkVar names the variable of a child's environment that carries [Spec.Mark], with the identity of the bridge that
// started it, to all its descendants.
const MarkVar = "MCPBRIDGE_CHILD"

// DefaultStderrRing is how many bytes of a child's stderr are kept when Spec.StderrRing is 0.
const DefaultStderrRing = 64 << 10

// MaxStderrLine is the length in bytes at which a line given to Spec.Stderr is cut; the rest of it comes as further lines.
const MaxStderrLine = 8 << 10

// Spec says how to start one child.
type Spec struct {
	// Name is the server's name for messages.
	Name string
	// Command is a file name looked up in the PATH of Env, or a path; a relative path counts from Dir. It is never
	// split and never given to a shell (case 102).
	Command string
	Args    []string
	// Dir is the working directory; "" is the bridge's own.
	Dir string
	// Env is the complete environment of the child ("K=V"). The spawner adds the mark and nothing else. Of two entries
	// of the same name the last one holds.
	Env []string
	// StderrRing is how many bytes of stderr are kept for [Process.Tail]; 0 means [DefaultStderrRing].
	StderrRing int
	// Mark identifies this installation in the environment of the child and its descendants, see [Sweep]. With "" there
	// is no marker, and descendants that leave the process group are not found.
	Mark string
	// Stderr is called for each line of stderr, without its end and cut at [MaxStderrLine] bytes, from one goroutine for each
	// process, whose number is pid: a piece of that length is continued by the next one of the same process. The
	// slice is valid during the call only. It must not block: the child waits for it. It may be nil.
	Stderr func(pid int, line []byte)
	// PipeSize is the capacity in bytes asked for on Linux for the pipes of stdin and stdout; 0 leaves it. A refusal is
	// ignored.
	PipeSize int
}

// Process is one running child.
type Process interface {
	// Pid is the number of the direct child. It may be used again once Done is closed.
	Pid() int
	// Stdin is the pipe to the child. On Unix it also has TryWrite(p []byte) (n int, err error): one write that never
	// blocks, (0..len(p), nil) when the pipe is full; not to be mixed with a Write at the same time.
	Stdin() io.WriteCloser
	// Stdout is read to io.EOF, also after the process has ended (case 12). It does not wait for survivors that hold
	// the pipe.
	Stdout() io.Reader
	// Tail returns a copy of the last bytes of stderr.
	Tail() []byte
	// Signal asks the whole group or job to end. errors.ErrUnsupported means that the platform has no such request for
	// this process.
	Signal(Level) error
	// Done is closed when the process has been waited for and what it left behind has been dealt with.
	Done() <-chan struct{}
	// Exit explains the end; valid after Done.
	Exit() Exit
}

// Level is how firmly a process is asked to end.
type Level uint8

// The levels: Terminate can be caught (SIGTERM, CTRL_BREAK), Kill cannot.
const (
	Terminate Level = iota
	Kill
)

// String names the level.
func (l Level) String() string {
	if l == Kill {
		return "kill"
	}
	return "terminate"
}

// Spawner starts processes: real ones in the program ([OS]), fakes under testing/synctest.
type Spawner interface {
	// Spawn starts the child and returns at once. A failure is a [*StartError].
	Spawn(Spec) (Process, error)
}
