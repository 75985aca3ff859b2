package main

import (
	"bufio"
	"errors"
	"os"
)

// serveStdio answers line by line until stdin ends, or is closed on demand. It writes
// when nothing more is waiting to be read, so that a burst costs one write.
func serveStdio(a *answerer, out *output) {
	in := bufio.NewReaderSize(os.Stdin, 256<<10)
	var big []byte
	for {
		line, err := readLine(in, &big)
		if err != nil {
			out.flush()
			return
		}
		out.setBusy(true)
		a.handle(line, out)
		if a.deaf {
			out.flush()
			os.Stdin.Close()
			return
		}
		if in.Buffered() == 0 {
			out.setBusy(false)
			out.flush()
		}
	}
}

// readLine returns the next line; it is valid until the next call. Lines longer
// than the reader's buffer are gathered in big.
func readLine(in *bufio.Reader, big *[]byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return line, err
	}
	*big = append((*big)[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = in.ReadSlice('\n')
		*big = append(*big, line...)
	}
	return *big, err
}
