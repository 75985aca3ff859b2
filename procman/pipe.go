package procman

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// survivorWait is how long readers wait for a pipe that something still holds open after the process and its tree have
// ended.
const survivorWait = 250 * time.Millisecond

// outPipe is the reading end of a child's stdout. It belongs to one reader.
type outPipe struct {
	file *os.File
	eof  atomic.Bool
}

// Read reads until everything written has been read. After the process has ended it does not wait for survivors, but
// what is in the pipe is still handed out however late the reader comes.
func (o *outPipe) Read(p []byte) (int, error) {
	if o.eof.Load() {
		return 0, io.EOF
	}
	n, err := o.file.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = readNow(o.file, p)
	}
	if err != nil {
		o.eof.Store(true)
		_ = o.file.Close()
	}
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// Close gives up the rest of the output.
func (o *outPipe) Close() error {
	o.eof.Store(true)
	return o.file.Close()
}

// ended tells that the process and its tree are gone.
func (o *outPipe) ended() { _ = o.file.SetReadDeadline(time.Now().Add(survivorWait)) }

// stdio is the bridge's side of a child's three pipes.
type stdio struct {
	in, out, err *os.File
}

func (s stdio) close() {
	for _, f := range []*os.File{s.in, s.out, s.err} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// openPipes makes the pipes; theirs is the child's side. All are closed on exec (case 18).
func openPipes(size int) (ours, theirs stdio, err error) {
	for _, p := range []struct{ r, w **os.File }{{&theirs.in, &ours.in}, {&ours.out, &theirs.out}, {&ours.err, &theirs.err}} {
		if *p.r, *p.w, err = os.Pipe(); err != nil {
			ours.close()
			theirs.close()
			return stdio{}, stdio{}, err
		}
	}
	if size > 0 {
		setPipeSize(ours.in, size)
		setPipeSize(ours.out, size)
	}
	return ours, theirs, nil
}
