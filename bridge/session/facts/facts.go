// Package facts keeps what changes about sessions in a file, so that they are what they were after the bridge has ended, however
// that was. It knows what a fact says, but neither sessions nor who they belong to: records are found by random numbers.
package facts

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"

	"mcpbridge/bridge/session"
)

const (
	// MaxRecords is how many sessions a file has records of. Beyond, a tenth of them is forgotten, those first whose life ends
	// first: of these a deleted session could be opened again, others lose their level and subscriptions.
	MaxRecords = 200_000
	// MaxFile is how large the file may grow in bytes. Beyond, a tenth of the records is forgotten in the same way.
	MaxFile = 256 << 20
	// MaxPending is how many bytes of records may wait for the disk. Beyond, records are not kept, and Bury fails.
	MaxPending = 16 << 20

	sweepEvery = time.Hour
	retryAfter = 10 * time.Second
)

var (
	errClosed = errors.New("cannot keep fact: the file is closed")
	errBroken = errors.New("the file contradicts itself; a fresh one is begun when the bridge is started again")
	errFull   = fmt.Errorf("cannot keep fact: %d bytes wait for the disk already", MaxPending)
)

type uid = [16]byte

// DB is a file of facts. It implements session.Facts. Records are written by one goroutine, many at a time; until then they are
// found in memory. One lock guards what waits.
type DB struct {
	bolt    *bbolt.DB
	broken  atomic.Bool // bolt is not to be touched any more
	max     int         // records
	records int         // of the writing goroutine

	wake chan struct{} // has an element when there is something to write
	stop chan struct{}
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	next    *batch // guarded by mu; to be written
	writing *batch // guarded by mu; being written, or nil
	closed  bool   // guarded by mu
	failed  error  // guarded by mu; of the last writing, nil if it went well
}

var _ session.Facts = (*DB)(nil)

// batch is records that are written together.
type batch struct {
	records map[uid][]byte
	bytes   int
	done    chan struct{} // closed when err is there
	err     error
}

func newBatch() *batch { return &batch{records: map[uid][]byte{}, done: make(chan struct{})} }

func (b *batch) get(id uid) []byte {
	if b == nil {
		return nil
	}
	return b.records[id]
}

// put reports whether there was room.
func (b *batch) put(id uid, rec []byte) bool {
	size := b.bytes + len(rec) - len(b.records[id])
	if size > MaxPending && len(b.records) > 0 {
		return false
	}
	b.records[id], b.bytes = rec, size
	return true
}

// Load implements session.Facts.
func (db *DB) Load(id uid) (f session.Fact, ok bool) {
	db.mu.Lock()
	rec := db.next.get(id)
	if rec == nil {
		rec = db.writing.get(id)
	}
	closed := db.closed
	db.mu.Unlock()
	if rec == nil && !closed {
		_ = db.use(func() error {
			return db.bolt.View(func(tx *bbolt.Tx) error {
				f, ok = decode(tx.Bucket(bucket).Get(id[:]))
				return nil
			})
		})
		return f, ok
	}
	return decode(rec)
}

// Save implements session.Facts.
func (db *DB) Save(id uid, f session.Fact) { _, _ = db.add(id, encode(f)) }

// Bury implements session.Facts. It fails if the disk does; the session counts as buried all the same while the bridge runs.
func (db *DB) Bury(id uid, until time.Time) error {
	b, err := db.add(id, encode(session.Fact{Buried: true, End: until}))
	if err != nil {
		return err
	}
	<-b.done
	return b.err
}

// add has a record written and returns the batch it is in, unless another of the session counts more.
func (db *DB) add(id uid, rec []byte) (*batch, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	switch {
	case db.closed:
		return nil, errClosed
	case !supersedes(rec, db.next.get(id)) || !supersedes(rec, db.writing.get(id)):
		return db.next, nil
	case !db.next.put(id, rec):
		return nil, errFull
	}
	select {
	case db.wake <- struct{}{}:
	default:
	}
	return db.next, nil
}

// Close writes what waits and closes the file. It returns the error of the last writing.
func (db *DB) Close() error {
	db.once.Do(func() {
		db.mu.Lock()
		db.closed = true
		db.mu.Unlock()
		close(db.stop)
	})
	<-db.done
	err := db.use(db.bolt.Close)
	db.mu.Lock()
	defer db.mu.Unlock()
	return errors.Join(db.failed, err)
}
