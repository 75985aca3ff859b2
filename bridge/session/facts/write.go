package facts

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// run owns the writing, until Close.
func (db *DB) run() {
	defer close(db.done)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	retry := time.NewTimer(retryAfter)
	retry.Stop()
	defer retry.Stop()
	for {
		var err error
		select {
		case <-db.wake:
			err = db.write()
		case <-retry.C:
			err = db.write()
		case now := <-sweep.C:
			db.note(db.sweep(now))
		case <-db.stop:
			_ = db.write()
			return
		}
		if err != nil {
			retry.Reset(retryAfter)
		}
	}
}

// write puts on the disk what waits. What cannot be written waits on.
func (db *DB) write() error {
	db.mu.Lock()
	b := db.next
	db.writing, db.next = b, newBatch()
	db.mu.Unlock()
	if len(b.records) > 0 {
		b.err = db.update(b)
	}
	if errors.Is(b.err, berrors.ErrMaxSizeReached) {
		b.err = errors.Join(db.shrink(), db.update(b))
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	db.writing, db.failed = nil, b.err
	if b.err != nil {
		for id, rec := range b.records {
			if db.next.get(id) == nil {
				db.next.put(id, rec)
			}
		}
	}
	close(b.done)
	return b.err
}

func (db *DB) note(err error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if err != nil {
		db.failed = err
	}
}

// update writes a batch in one transaction.
func (db *DB) update(b *batch) error {
	added := 0
	err := db.change(func(tx *bbolt.Tx) error {
		facts := tx.Bucket(bucket)
		for id, rec := range b.records {
			old := facts.Get(id[:])
			if !supersedes(rec, old) {
				continue
			}
			if old == nil {
				added++
			}
			if err := facts.Put(id[:], rec); err != nil {
				return err
			}
		}
		if over := db.records + added - db.max; over > 0 {
			n, err := forget(facts, max(over, db.max/10))
			added -= n
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot write session facts: %w", err)
	}
	db.records += added
	return nil
}

// shrink forgets a tenth of the records, whose room others can take.
func (db *DB) shrink() error {
	removed := 0
	err := db.change(func(tx *bbolt.Tx) (err error) {
		removed, err = forget(tx.Bucket(bucket), max(db.records/10, 1))
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot make room for session facts: %w", err)
	}
	db.records -= removed
	return nil
}

func (db *DB) change(f func(*bbolt.Tx) error) error {
	return db.use(func() error { return db.bolt.Update(f) })
}

// forget removes n records, those first whose life ends first.
func forget(facts *bbolt.Bucket, n int) (removed int, err error) {
	type end struct {
		key []byte
		at  int64
	}
	var ends []end
	for k, v := range records(facts) {
		ends = append(ends, end{k, endOf(v)})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	for _, e := range ends[:min(n, len(ends))] {
		if err := facts.Delete(e.key); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// sweep removes the records of sessions whose life is over, and what is no record, and counts the others.
func (db *DB) sweep(now time.Time) error {
	left := 0
	err := db.change(func(tx *bbolt.Tx) error {
		facts, err := tx.CreateBucketIfNotExists(bucket)
		if err != nil {
			return err
		}
		var over [][]byte
		for k, v := range records(facts) {
			if endOf(v) < now.UnixNano() {
				over = append(over, k)
			} else {
				left++
			}
		}
		for _, k := range over {
			if err := facts.Delete(k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot sweep session facts: %w", err)
	}
	db.records = left
	return nil
}

// records goes through a bucket, which must not be changed meanwhile. Keys are good until the transaction ends.
func records(b *bbolt.Bucket) func(yield func(k, v []byte) bool) {
	return func(yield func(k, v []byte) bool) {
		c := b.Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if !yield(k, v) {
				return
			}
		}
	}
}

// endOf is when a record is of no interest any more, in nanoseconds since 1970; at once if it cannot be read.
func endOf(rec []byte) int64 {
	f, ok := decode(rec)
	switch {
	case !ok:
		return math.MinInt64
	case f.End.IsZero():
		return math.MaxInt64
	}
	return f.End.UnixNano()
}
