package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
)

// Examination is what was found out about a server, and what each kind of client gets of it.
type Examination struct {
	Server       string                   `json:"server"`
	Remote       string                   `json:"remote,omitempty"` // address of a remote server, without secrets
	Speaks       []string                 `json:"speaks"`           // "legacy", "modern"
	Revisions    []string                 `json:"revisions"`
	Info         json.RawMessage          `json:"serverInfo,omitempty"`
	Capabilities json.RawMessage          `json:"capabilities"`
	Clients      map[string][]era.Carried `json:"clients"` // by revision
}

// Examine starts the only server of the configuration, or makes a connection to it, and tells what it is. ctx bounds it.
func (d *Daemon) Examine(ctx context.Context) (x *Examination, err error) {
	defer d.end()
	defer d.state.close()
	t := d.table.Load()
	if len(t.endpoints) != 1 {
		return nil, errors.New("one server is wanted, and the configuration has another number of them")
	}
	e := t.endpoints[0]
	defer func() {
		d.refuseWork()
		err = errors.Join(err, d.endServers())
	}()
	if err := e.missing(); err != nil {
		return nil, err
	}
	x = &Examination{Server: e.name, Clients: map[string][]era.Carried{}}
	if e.remote != nil {
		x.Remote = e.cfg.ShownURL()
	}
	opened := map[mcp.Era]*bridge.Facts{}
	for _, want := range [...]mcp.Era{mcp.Modern, mcp.Legacy} {
		link, failed := e.pool.Shared(pool.Key{Era: want, Principal: bridge.Local}, e.opening(0))
		if failed != nil {
			return nil, failed
		}
		c, failed := link.Conn(ctx)
		if failed != nil {
			return nil, failed
		}
		opened[want] = c.Facts()
		x.add(c.Facts())
	}
	for _, v := range append(mcp.ModernVersions(), mcp.LegacyVersions()...) {
		f := opened[v.Era()]
		x.Clients[string(v)] = era.Report(v, f.Era, f.Capabilities())
	}
	return x, nil
}

// add notes what one connection told.
func (x *Examination) add(f *bridge.Facts) {
	if slices.Contains(x.Speaks, f.Era.String()) {
		return
	}
	x.Speaks = append(x.Speaks, f.Era.String())
	info := f.Hello.ServerInfo
	if f.Era == mcp.Modern {
		x.Revisions, info = append(x.Revisions, f.Discovery.SupportedVersions...), f.Discovery.ServerInfo
	} else if !slices.Contains(x.Revisions, string(f.Version)) {
		x.Revisions = append(x.Revisions, string(f.Version))
	}
	if x.Info == nil && json.Valid(info) {
		x.Info = info
	}
	if x.Capabilities == nil && json.Valid(f.Capabilities()) {
		x.Capabilities = f.Capabilities()
	}
}
