package pool

import (
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
)

// Config describes the links of one server. The zero value of a limit means its default.
type Config struct {
	Name string
	// Max is how many processes of the server there may be. Default 8.
	Max int
	// Idle is how long a shared link nobody uses keeps its server running. Default 10 minutes; negative: for ever.
	Idle time.Duration
	// Budget is shared by all servers.
	Budget *Budget
	// Back makes the back of a link, or of a spare. It may implement Warm and Gone.
	Back func() bridge.Back
	// Link holds what all links of the server have in common.
	Link bridge.LinkConfig
	// Grace bounds the end of one process. Default 10 seconds.
	Grace time.Duration
	// Yield is how long a link must have been unused, with no open request and no listening client, before its process may be
	// ended to make room for another. Default 30 seconds.
	Yield time.Duration
	// Wait is how long an opening waits for a seat when all are taken. Default 10 seconds.
	Wait time.Duration
	// Waiting is how many openings may wait; one more is refused at once. Default 64.
	Waiting int
	// Links is how many links there may be, with a process or without; one more is refused. Default 10,000.
	Links int
	// Spare is how many processes are kept started ahead of use. They take seats, but never the last free one. Default none.
	Spare int
	// Keep has shared links opened again by themselves; they do not end when idle.
	Keep bool
}

func (c Config) withDefaults() Config {
	c.Max = or(c.Max, 8)
	c.Idle = or(c.Idle, 10*time.Minute)
	c.Grace = or(c.Grace, 10*time.Second)
	c.Yield = or(c.Yield, 30*time.Second)
	c.Wait = or(c.Wait, 10*time.Second)
	c.Waiting = or(c.Waiting, 64)
	c.Links = or(c.Links, 10_000)
	if c.Budget == nil {
		c.Budget = NewBudget(0)
	}
	return c
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// Key tells links apart that several clients share (design section 8, link identity).
type Key struct {
	Era       mcp.Era
	Principal bridge.Principal // "" where all principals share
	Profile   era.Profile      // what the link declares
}

// owner is who several profiles of one kind of client belong to.
type owner struct {
	era       mcp.Era
	principal bridge.Principal
}

func (k Key) owner() owner { return owner{k.Era, k.Principal} }

// The kinds of what an Entry tells about.
const (
	KindSession   = "session"
	KindPrincipal = "principal"
	KindShared    = "shared"
	KindRequest   = "request"
	KindSpare     = "spare"
)

func (k Key) kind() string {
	if k.Principal == "" {
		return KindShared
	}
	return KindPrincipal
}
