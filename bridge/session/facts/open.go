package facts

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// lockWait is how long a file that another bridge uses is waited for.
const lockWait = 200 * time.Millisecond

var bucket = []byte("sessions")

// Open opens a file of facts, which is made if there is none, for its owner alone (mode 0600). A file that another bridge uses is an
// error. One that cannot be read is moved aside and a fresh one begun: warning tells of it, and the database is good.
func Open(path string) (db *DB, warning, err error) {
	db, err = open(path)
	if broken, ok := errors.AsType[*brokenError](err); ok {
		aside, failed := moveAside(path)
		if failed != nil {
			return nil, nil, fmt.Errorf("cannot replace session facts that cannot be read (%w): %w", broken, failed)
		}
		warning = fmt.Errorf("cannot read session facts in %s: %w; the file is kept as %s and a fresh one begun: log levels and subscriptions of "+
			"sessions are lost, and sessions that were deleted may be opened again", path, broken.cause, aside)
		db, err = open(path)
	}
	if err != nil {
		return nil, warning, err
	}
	go db.run()
	return db, warning, nil
}

// brokenError is the error of a file that is there and can be used by us, but not read.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }

// open opens the file and reads all of it. The list of free pages is kept in the file, because bbolt would gather it in a goroutine
// of its own, where a broken file ends the program.
func open(path string) (*DB, error) {
	var b *bbolt.DB
	err := guard(func() (err error) {
		b, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockWait, MaxSize: MaxFile, FreelistType: bbolt.FreelistMapType, NoStatistics: true})
		return err
	})
	if err != nil {
		return nil, openError(path, err)
	}
	_ = os.Chmod(path, 0o600) // it may have been copied from elsewhere
	db := &DB{bolt: b, max: MaxRecords, next: newBatch(), wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if err := db.sweep(time.Now()); err != nil {
		_ = db.use(b.Close)
		return nil, openError(path, err)
	}
	return db, nil
}

// guard calls f and turns a panic into a brokenError: bbolt panics about a file that contradicts itself, and reads of memory
// fault where a file is shorter than it says.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = &brokenError{fmt.Errorf("the file is damaged (%v)", cause)}
		}
	}()
	return f()
}

// use works with the file, unless it has turned out to be broken: after a panic bbolt holds its locks for ever, and its descriptor
// stays open until the program ends. What is kept from then on is kept in memory.
func (db *DB) use(f func() error) error {
	if db.broken.Load() {
		return errBroken
	}
	err := guard(f)
	if _, ok := errors.AsType[*brokenError](err); ok {
		db.broken.Store(true)
	}
	return err
}

func openError(path string, err error) error {
	if errors.Is(err, berrors.ErrTimeout) {
		return fmt.Errorf("cannot open session facts: another bridge uses %s", path)
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok { // the system's word, not about what is in the file
		return fmt.Errorf("cannot open session facts: %w", err)
	}
	return &brokenError{err}
}

// moveAside gives a file a name of the present time and returns that.
func moveAside(path string) (aside string, err error) {
	aside = path + ".broken-" + time.Now().UTC().Format("20060102T150405.000")
	return aside, os.Rename(path, aside)
}
