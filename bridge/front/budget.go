package front

import (
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// DefaultBodyTotal is how many bytes of bodies all requests under way may hold together unless limits.bodyTotalBytes says
// otherwise.
const DefaultBodyTotal = 512 << 20

// BodyBudget is what the bodies of all requests under way may hold together (rule 4, SEC-07). It is shared by all
// handlers of a bridge.
type BodyBudget struct {
	max  atomic.Int64
	used atomic.Int64
}

// NewBodyBudget returns a budget in bytes; 0 or less means DefaultBodyTotal.
func NewBodyBudget(bytes int64) *BodyBudget {
	b := &BodyBudget{}
	b.Resize(bytes)
	return b
}

// Resize changes the budget. What is held already stays held.
func (b *BodyBudget) Resize(bytes int64) {
	if bytes <= 0 {
		bytes = DefaultBodyTotal
	}
	b.max.Store(bytes)
}

// Hold is the share of one request.
type Hold struct {
	budget *BodyBudget
	bytes  int64
}

// grow makes the share n bytes, or refuses: 503, to be tried again.
func (h *Hold) grow(n int64) *bridge.Error {
	if h == nil || h.budget == nil {
		return nil
	}
	if h.budget.used.Add(n-h.bytes) > h.budget.max.Load() && n > h.bytes {
		h.budget.used.Add(h.bytes - n)
		return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 1,
			Message: "cannot read request: the bodies of all requests under way hold " + strconv.FormatInt(h.budget.max.Load(), 10) +
				" bytes, the setting limits.bodyTotalBytes; try again later."}
	}
	h.bytes = n
	return nil
}

// release gives the share back.
func (h *Hold) release() {
	if h.budget != nil {
		h.budget.used.Add(-h.bytes)
		h.bytes = 0
	}
}

// paceStep is how much of a body must arrive within one body timeout.
const paceStep = 1 << 20

// paced is a body whose sender has to keep a pace: each time another step has arrived the deadline moves on.
type paced struct {
	io.ReadCloser
	extend func(time.Time) error
	wait   time.Duration
	left   int64 // of this step
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if p.left -= int64(n); p.left <= 0 {
		p.left = paceStep
		_ = p.extend(time.Now().Add(p.wait))
	}
	return n, err
}
