//go:build unix

package procman

import (
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// inPipe is the writing end of a child's stdin.
type inPipe struct {
	*os.File
	mu   sync.Mutex // guards the rest: one attempt at a time
	conn syscall.RawConn
	call func(fd uintptr) // made once: an attempt allocates nothing
	data []byte
	n    int
	err  error
}

func newInPipe(f *os.File) io.WriteCloser {
	conn, err := f.SyscallConn()
	if err != nil {
		return f // a file that is open has one
	}
	p := &inPipe{File: f, conn: conn}
	p.call = func(fd uintptr) { p.n, p.err = writeNow(int(fd), p.data) }
	return p
}

// TryWrite makes one attempt to write and never blocks: it returns how much of p the pipe took, (0, nil) when it is
// full. A write of at most PIPE_BUF bytes (4 KiB on Linux) is taken whole or not at all.
func (p *inPipe) TryWrite(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.data = data
	err := p.conn.Control(p.call)
	p.data = nil
	if err != nil {
		return 0, os.ErrClosed
	}
	return p.n, p.err
}

func writeNow(fd int, data []byte) (int, error) {
	for {
		n, err := unix.Write(fd, data)
		switch err {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return 0, nil
		case nil:
			return n, nil
		}
		return 0, &os.PathError{Op: "write", Path: "stdin of the process", Err: err}
	}
}

// readNow reads what is in the pipe; a pipe that is empty counts as ended.
func readNow(f *os.File, p []byte) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, io.EOF
	}
	_ = conn.Control(func(fd uintptr) { n, err = unix.Read(int(fd), p) })
	if err != nil || n <= 0 {
		return 0, io.EOF
	}
	return n, nil
}
