package procman

import (
	"errors"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// handle is a child in a job of its own, which ends with all its members when the last handle to it closes, that is at
// the latest when the bridge ends.
type handle struct {
	proc    *os.Process
	pid     int
	marker  string
	console bool // shares the bridge's console, so that CTRL_BREAK reaches it
	state   *os.ProcessState
	err     error // as state, written by the goroutine that waits

	mu  sync.Mutex
	job windows.Handle // guarded by mu; 0 once closed
}

// signal sends CTRL_BREAK to the child's process group, or ends the job. Without a console there is nothing milder than
// the latter.
func (h *handle) signal(l Level) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.job == 0:
		return os.ErrProcessDone
	case l == Kill:
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(h.job, killedStatus))
	case !h.console:
		return errors.ErrUnsupported
	}
	return os.NewSyscallError("GenerateConsoleCtrlEvent", windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(h.pid)))
}

// killedStatus is the exit status that a killed job's processes get.
const killedStatus = 1

func (h *handle) awaitExit() { h.state, h.err = h.proc.Wait() }

// endTree gives what the leader left behind time to end, and then ends the job.
func (h *handle) endTree(patience func() time.Duration) []int {
	begin := time.Now()
	for len(h.members()) > 0 && time.Since(begin) < patience() {
		time.Sleep(pollEvery)
	}
	if len(h.members()) == 0 {
		return nil
	}
	_ = h.signal(Kill)
	for begin = time.Now(); len(h.members()) > 0 && time.Since(begin) < killWait; {
		time.Sleep(pollEvery)
	}
	return h.members()
}

const (
	pollEvery = 5 * time.Millisecond // how often it is looked whether the job is empty
	killWait  = time.Second          // how long killed processes have to disappear
)

// maxJobMembers is how many members of a job are looked at.
const maxJobMembers = 256

// members lists the processes in the job.
func (h *handle) members() []int {
	var list struct {
		Assigned, InList uint32
		Pids             [maxJobMembers]uintptr
	}
	h.mu.Lock()
	err := windows.QueryInformationJobObject(h.job, windows.JobObjectBasicProcessIdList,
		uintptr(unsafe.Pointer(&list)), uint32(unsafe.Sizeof(list)), nil)
	h.mu.Unlock()
	if err != nil && !errors.Is(err, windows.ERROR_MORE_DATA) {
		return nil
	}
	pids := make([]int, 0, list.InList)
	for _, pid := range list.Pids[:min(list.InList, maxJobMembers)] {
		pids = append(pids, int(pid))
	}
	return pids
}

// reap returns the status of the leader and closes the job.
func (h *handle) reap() (code int, sig string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = windows.CloseHandle(h.job)
	h.job = 0
	if h.err != nil {
		return -1, "", h.err
	}
	return h.state.ExitCode(), "", nil
}
