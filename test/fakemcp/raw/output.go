package main

import (
	"bufio"
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// junkBefore is what each junk class prints before a tools/call reply. The classes
// crlf and split change the reply itself.
var junkBefore = map[string]string{
	"text":   "Starting server... [INFO] {not json\n",
	"blank":  "\n   \n\n",
	"utf8":   "bad \xff\xfe\xc3\x28 utf8\n",
	"long":   string(bytes.Repeat([]byte("x"), 1<<20)) + "\n",
	"scalar": "42\nnull\n\"str\"\ntrue\n",
	"object": "{\"foo\":1}\n{\"level\":\"info\",\"msg\":\"hi\",\"id\":7}\n{\"jsonrpc\":\"2.0\",\"id\":424242,\"result\":{}}\n",
	"batch":  "[]\n[1,2]\n",
}

// output writes messages to stdout, one a line, junk included.
type output struct {
	busy   atomic.Bool // more input waits: the reader will flush
	mu     sync.Mutex
	w      *bufio.Writer
	junk   string
	ending string
	split  bool
}

func newOutput(w io.Writer, classes []string) *output {
	o := &output{w: bufio.NewWriterSize(w, 256<<10), ending: "\n"}
	for _, class := range classes {
		o.junk += junkBefore[class]
		o.split = o.split || class == "split"
		if class == "crlf" {
			o.ending = "\r\n"
		}
	}
	return o
}

func (o *output) setBusy(b bool) { o.busy.Store(b) }

func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.w.Flush()
}

// reply sends a response; isCall says that it answers tools/call.
func (o *output) reply(id, body []byte, isError, isCall bool) {
	o.line(response(id, body, isError), isCall)
	if !o.busy.Load() {
		o.flush()
	}
}

func (o *output) notify(m []byte) {
	o.line(m, false)
	o.flush()
}

func (o *output) line(m []byte, isCall bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if isCall {
		o.w.WriteString(o.junk)
	}
	if isCall && o.split {
		o.crumble(m)
	} else {
		o.w.Write(m)
	}
	o.w.WriteString(o.ending)
}

// crumble writes m seven bytes at a time, a millisecond apart.
func (o *output) crumble(m []byte) {
	for len(m) > 0 {
		n := min(7, len(m))
		o.w.Write(m[:n])
		o.w.Flush()
		time.Sleep(time.Millisecond)
		m = m[n:]
	}
}

func response(id, body []byte, isError bool) []byte {
	b := make([]byte, 0, len(body)+len(id)+48)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if isError {
		b = append(b, `,"error":`...)
	} else {
		b = append(b, `,"result":`...)
	}
	b = append(b, body...)
	return append(b, '}')
}
