// Package telemetry keeps what happens to servers where people can look at it later: for now, what each writes to its
// stderr, in files. It owns their names, their size and how they are read while they are written. It must not know who
// reads them, nor where the lines come from.
//
// Files. A log is NAME.log; when it is full it is put aside as NAME.log.N, where N grows by one each time, and a new one
// is begun. Since a file put aside never changes its name again, a reader that remembers N and an offset finds its place
// however often the log was rotated meanwhile, without holding a file open, which would keep other systems from
// renaming it. A library for rotation was rejected: the one at hand keeps a goroutine for ever for each log (a server
// that comes and goes with reloads would leave one each time), names old files by the time, which a server whose
// name looks alike would have removed as its own, and cannot tell a reader where it is.
//
// Order. Line puts lines into a bounded queue; one goroutine takes them out, hides secrets and writes. It is there from
// the first line to Close.
package telemetry

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"mcpbridge/bridge/mask"
)

// Limits of one log.
const (
	// MaxLine is the length in bytes at which a line is cut; the rest of it is written as further lines.
	MaxLine = 8 << 10
	// FloodLines and FloodBytes are what is taken in a second. The rest is left out, and a line says how much it was.
	FloodLines = 2000
	FloodBytes = 512 << 10
	// QueueBytes is what may wait for the disk, lineCost for each line included. What comes on top is left out, and a line
	// says how much it was.
	QueueBytes = 1 << 20
	lineCost   = 64
)

// ServerLog writes the log of one server. Its methods may be called by several goroutines.
type ServerLog struct {
	files *store
	mask  mask.Masker
	wake  chan struct{} // holds a token when the goroutine has something to do
	done  chan struct{} // closed when the goroutine has ended

	mu     sync.Mutex
	queue  []entry
	cost   int // of queue
	flood  flood
	late   int // lines that found the queue full since the goroutine looked last
	begun  bool
	closed bool
	err    error // why the last lines could not be written
}

// entry is one line on its way, or a piece of one.
type entry struct {
	at      time.Time
	process string
	text    string
	full    bool // it was cut, the rest may follow
	note    bool // it is the bridge's own
}

// NewServerLog returns the log of the server called name in folder dir, which is made with mode 0700 when the first line
// comes. Files have mode 0600. One that has maxMB megabytes is put aside, keep of those stay. m hides secrets (SEC-09). Two logs of one
// server, as there are for a while after a reload, may write at the same time.
func NewServerLog(dir, name string, maxMB, keep int, m mask.Masker) *ServerLog {
	return newServerLog(newStore(dir, name, int64(maxMB)<<20, keep), m)
}

func newServerLog(files *store, m mask.Masker) *ServerLog {
	return &ServerLog{files: files, mask: m, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Line takes one line without its end. process tells apart the processes of the server; it may be "". line is not kept. Line does
// not wait for the disk.
func (l *ServerLog) Line(process string, line []byte) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for {
		piece := line[:min(len(line), MaxLine)]
		line = line[len(piece):]
		l.push(entry{at: now, process: process, full: len(piece) == MaxLine}, piece)
		if len(line) == 0 {
			break
		}
	}
	if !l.begun {
		l.begun = true
		go l.run()
	}
	l.rouse()
}

// push queues one piece, if the limits let it through. l.mu is held.
func (l *ServerLog) push(e entry, text []byte) {
	if note := l.flood.settle(e.at, false); note != "" {
		l.enqueue(entry{at: e.at, text: note, note: true})
	}
	switch {
	case !l.flood.admit(e.at, len(text)):
	case l.cost+len(text)+lineCost > QueueBytes:
		l.late++
	default:
		e.text = string(text)
		l.enqueue(e)
	}
}

func (l *ServerLog) enqueue(e entry) {
	l.queue = append(l.queue, e)
	l.cost += len(e.text) + lineCost
}

func (l *ServerLog) rouse() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close writes what waits and ends the log; later lines are dropped. Followers get the rest and end. A second call does nothing.
func (l *ServerLog) Close() {
	l.mu.Lock()
	begun := l.begun
	l.closed = true
	l.mu.Unlock()
	if begun {
		l.rouse()
		<-l.done
		return
	}
	l.files.close()
}

// Tail writes the last n lines to w. It reports too that lines cannot be written now.
func (l *ServerLog) Tail(n int, w io.Writer) error {
	if err := l.files.tail(n, w); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Follow writes the last n lines to w and then each further one, until ctx ends, the log is closed (both nil) or w fails.
// A reader so slow that lines are removed before it comes to them is told so.
func (l *ServerLog) Follow(ctx context.Context, n int, w io.Writer) error {
	return l.files.follow(ctx, n, w)
}

// Reader reads the log of a server that another program writes, or has written.
type Reader struct{ files *store }

// OpenServerLog returns a reader of what [NewServerLog] has written with the same dir and name.
func OpenServerLog(dir, name string) *Reader { return &Reader{newStore(dir, name, 0, 0)} }

// Exists reports whether there is a log.
func (r *Reader) Exists() bool {
	_, _, err := r.files.back(0)
	return err == nil
}

// Tail writes the last n lines to w. The error wraps [fs.ErrNotExist] if there is no log.
func (r *Reader) Tail(n int, w io.Writer) error { return r.files.tail(n, w) }

// Follow writes the last n lines to w and then each further one, until ctx ends (nil) or w fails. The log need not exist yet.
func (r *Reader) Follow(ctx context.Context, n int, w io.Writer) error {
	return r.files.follow(ctx, n, w)
}
