package daemon

import (
	"context"
	"errors"
	"io"

	"mcpbridge/bridge"
	"mcpbridge/bridge/front"
)

// Connect serves one host over a pair of byte streams, in front of the only server of the configuration, until in ends or ctx does.
// Nothing listens, and nothing is kept: the bridge ends with its host.
func (d *Daemon) Connect(ctx context.Context, in io.Reader, out io.Writer) error {
	defer d.end()
	defer d.state.close()
	t := d.table.Load()
	if len(t.endpoints) != 1 {
		return errors.New("one server is wanted, and the configuration has another number of them")
	}
	e := t.endpoints[0]
	e.start(d)
	h := front.NewHost(front.Config{Endpoint: e, Parked: e.parked, Stopping: e.leaving}, bridge.Local, t.cfg.Limits.LineBytes)
	err := h.Serve(ctx, in, out)
	d.refuseWork()
	return errors.Join(err, d.endServers())
}
