package procman

import (
	"io"
	"os"
)

// newInPipe returns the file itself: pipes made here cannot be written without blocking.
func newInPipe(f *os.File) io.WriteCloser { return f }

// readNow is never needed: pipes have no deadlines here, and the job ends everything that could hold one.
func readNow(*os.File, []byte) (int, error) { return 0, io.EOF }
