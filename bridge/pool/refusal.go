package pool

import (
	"strconv"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

func overload(text string) *bridge.Error {
	return &bridge.Error{Status: 503, Code: mcp.CodeInternal, Reason: bridge.ReasonOverload, Retry: 5, Message: text}
}

// stopping refuses what comes while the server is being stopped.
func (p *Pool) stopping() *bridge.Error {
	e := bridge.Unavailable("server " + p.cfg.Name + " is being stopped")
	e.Reason = bridge.ReasonStopping
	return e
}

// crowded refuses a link beyond Config.Links.
func (p *Pool) crowded() *bridge.Error {
	return overload("server " + p.cfg.Name + " already has as many clients and sessions as it may: " + strconv.Itoa(p.cfg.Links))
}

// profiles refuses a client whose features no link of its owner fits.
func (p *Pool) profiles() *bridge.Error {
	return overload("server " + p.cfg.Name + " already serves you in " + strconv.Itoa(maxProfiles) +
		" ways, each with client capabilities this request does not declare, and all of them are in use")
}

// fullLocked refuses an opening for which there is no seat. It names the setting that is in the way.
func (p *Pool) fullLocked(why string) *bridge.Error {
	setting, n := "limits.processes", p.cfg.Budget.max
	if p.seats.used >= p.cfg.Max {
		setting, n = "maxProcesses of the server", p.cfg.Max
	}
	return overload("server " + p.cfg.Name + " cannot be started: as many processes run as may (" + setting + ": " + strconv.Itoa(n) + "), " + why)
}

func waited(d time.Duration) string {
	return "and none could be ended for it while it waited " + d.Round(time.Millisecond).String()
}

func tooMany(n int) string { return "and " + strconv.Itoa(n) + " others wait for one already" }
