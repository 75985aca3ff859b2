package bridge

import "time"

// Limits bound what one link holds (rule 4). The zero value of a field means its default.
type Limits struct {
	// Calls is the number of requests open at one server at a time. Above it a request is refused with reason
	// "overload" and HTTP status 429. Default 10,000.
	Calls int
	// Timeout is how long a request may go without an answer or progress (CAN-08). Default 5 minutes.
	Timeout time.Duration
	// HardTimeout ends a request that keeps making progress (CAN-09). Default 1 hour, at least Timeout.
	HardTimeout time.Duration
	// Start bounds the start of a server up to the end of its handshake (case 28). Default 60 seconds.
	Start time.Duration
	// Probe bounds the wait for the answer to the era probe (VER-26). Default 5 seconds.
	Probe time.Duration
	// Queue is the number of bytes that may wait for a server that does not read. Default 64 MiB.
	Queue int
	// Line is the longest message taken from a server, in bytes. Default 64 MiB.
	Line int
	// Subscriptions is the number of resource URIs a link holds. Default 10,000.
	Subscriptions int
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// WithDefaults fills in what is zero.
func (l Limits) WithDefaults() Limits {
	l.Calls = or(l.Calls, 10_000)
	l.Timeout = or(l.Timeout, 5*time.Minute)
	l.HardTimeout = max(or(l.HardTimeout, time.Hour), l.Timeout)
	l.Start = or(l.Start, 60*time.Second)
	l.Probe = or(l.Probe, 5*time.Second)
	l.Queue = or(l.Queue, 64<<20)
	l.Line = or(l.Line, 64<<20)
	l.Subscriptions = or(l.Subscriptions, 10_000)
	return l
}
