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
	// SendWait is how long messages wait for room in a full Queue before they are refused with reason "back_busy" and HTTP
	// status 503, counted from when the server was last seen to take something: while it takes nothing, nobody waits longer in
	// all, whatever needs several messages included, and who comes later is refused at once. Nothing has been written to a client
	// that long, and a proxy endures it, so a call that waits for room needs no keep-alives and its refusal keeps its own HTTP
	// status. Default 10 seconds.
	SendWait time.Duration
	// Waiting is the number of bytes of messages that may wait for room in Queue; one message always may. What comes
	// beyond is refused at once, as after SendWait. Default 192 MiB, with Queue half of what bodies may hold in all.
	Waiting int
	// Notices is the number of bytes of cancellations and of answers to the server's own requests that may wait for room in
	// Queue. They hold nobody up, and wait until the server reads or ends. What comes beyond is dropped with an EventDropped.
	// Default 4 MiB.
	Notices int
	// Ask is how long a legacy client has to answer a question of a modern server (translation 6.4). Default 10 minutes.
	Ask time.Duration
	// Line is the longest message taken from a server, in bytes. Default 64 MiB.
	Line int
	// Listeners is the number of listens of modern clients a link to a legacy server holds. Default 10,000.
	Listeners int
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
	l.SendWait = or(l.SendWait, 10*time.Second)
	l.Waiting = or(l.Waiting, 192<<20)
	l.Notices = or(l.Notices, 4<<20)
	l.Ask = or(l.Ask, 10*time.Minute)
	l.Line = or(l.Line, 64<<20)
	l.Listeners = or(l.Listeners, 10_000)
	l.Subscriptions = or(l.Subscriptions, 10_000)
	return l
}
