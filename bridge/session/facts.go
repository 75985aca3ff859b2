package session

import (
	"time"

	"mcpbridge/bridge/mcp"
)

// Fact is what changes about a session while it lives.
type Fact struct {
	Level         mcp.Level
	Subscriptions []string // raw JSON strings
	// Used is when the session was last used. Of a running one it may be older than the truth, but by no more than two minutes.
	Used    time.Time
	Running bool
	End     time.Time // of its life; it is of no interest afterwards. Zero: never
	Buried  bool      // it has ended for good; nothing else counts but End
}

// Facts keeps what changes about sessions while they are not in memory, and across restarts. It is used by several goroutines at
// once, and by several stores. None of its methods may block for long.
type Facts interface {
	// Load returns what was saved last, on the disk yet or not.
	Load(uid [16]byte) (f Fact, ok bool)
	// Save keeps a fact, soon. It changes nothing about a session that is buried, or of which a later use is known.
	Save(uid [16]byte, f Fact)
	// Bury keeps that a session has ended for good, until a time; the zero time is for ever. It is durable on return.
	Bury(uid [16]byte, until time.Time) error
}

const (
	// saveEvery is the shortest time between two facts of a session whose level or subscriptions change: others follow.
	saveEvery = time.Second
	// useEvery is that time for a session that is just being used.
	useEvery = time.Minute
	// useSlack is by how much the last use of a session that was running may be later than was kept: the time between two
	// looks comes on top of useEvery.
	useSlack = 2 * useEvery
)

// note tells the store that a fact has changed.
func (s *Session) note() {
	select {
	case s.store.changed <- struct{}{}:
	default:
	}
}

// factLocked is what is to be kept of the session.
func (s *Session) factLocked(running bool) Fact {
	return Fact{Level: s.level, Subscriptions: append([]string(nil), s.subscriptions...), Used: s.used, Running: running, End: s.store.lifeEnd(s.issued)}
}

// which facts are to be saved.
type which uint8

const (
	changes which = iota // level and subscriptions, not more often than every second
	uses                 // last uses too, not more often than every minute
	all                  // whatever is not kept yet
)

// save gives a fact to whoever keeps them if it is due. later reports that a change has to wait. The lock is held, so that what is
// kept in the end is what holds.
func (s *Session) save(w which, now time.Time, running bool) (later bool) {
	if !s.sealed {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := now.Sub(s.saved)
	due := s.changed && (w == all || wait >= saveEvery) ||
		w == uses && s.used.After(s.savedUse) && wait >= useEvery ||
		w == all && (s.used.After(s.savedUse) || s.savedRunning != running)
	if !due {
		return s.changed
	}
	s.changed, s.saved, s.savedUse, s.savedRunning = false, now, s.used, running
	s.store.facts.Save(s.uid, s.factLocked(running))
	return false
}

// restore gives a session that is being reopened what is known of it.
func (s *Session) restore(f Fact) {
	s.level, s.subscriptions, s.savedUse, s.savedRunning = f.Level, f.Subscriptions, f.Used, f.Running
}
