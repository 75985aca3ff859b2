package config

import (
	"maps"
	"reflect"
	"slices"
)

// Plan says what a new configuration changes. Server names are those that are there: an entry that is broken or
// disabled counts as none.
type Plan struct {
	Added, Removed []string // servers that are there only in the new or only in the old configuration
	Changed        []string // servers in both that have to be run differently
	Same           []string // servers in both that may go on untouched
	Root           []string // settings outside the servers that differ and can change while the bridge runs, such as "limits.sessions"
	Restart        []string // settings outside the servers that differ and need a restart of the bridge, such as "listen"
}

// Diff compares two configurations as they are after expansion. Names come in the order of the new file, removed ones
// in that of the old.
func Diff(old, new *Config) Plan {
	var p Plan
	before, after := usable(old), usable(new)
	for i := range new.Servers {
		s := &new.Servers[i]
		if after[s.Name] != s {
			continue
		}
		switch was := before[s.Name]; {
		case was == nil:
			p.Added = append(p.Added, s.Name)
		case sameEntry(*was, *s):
			p.Same = append(p.Same, s.Name)
		default:
			p.Changed = append(p.Changed, s.Name)
		}
	}
	for i := range old.Servers {
		if name := old.Servers[i].Name; before[name] == &old.Servers[i] && after[name] == nil {
			p.Removed = append(p.Removed, name)
		}
	}
	p.Root, p.Restart = diffRoot(old, new)
	return p
}

// usable are the servers that can be run, by name.
func usable(c *Config) map[string]*Server {
	byName := map[string]*Server{}
	for i := range c.Servers {
		if s := &c.Servers[i]; s.Problem == nil && !s.Disabled {
			byName[s.Name] = s
		}
	}
	return byName
}

// sameEntry reports whether two usable entries are run in the same way. How they are written does not matter.
func sameEntry(a, b Server) bool {
	for _, s := range []*Server{&a, &b} {
		s.shown = shown{}
		s.Args, s.Roots = orNil(s.Args), orNil(s.Roots)
		s.Env, s.Headers = orNilMap(s.Env), orNilMap(s.Headers)
		s.Mirror = maps.Clone(s.Mirror)
		maps.DeleteFunc(s.Mirror, func(_ string, headers map[string]string) bool { return len(headers) == 0 })
		s.Mirror = orNilMap(s.Mirror)
	}
	return reflect.DeepEqual(a, b)
}

// diffRoot compares what stands beside the servers.
func diffRoot(old, new *Config) (live, restart []string) {
	for _, s := range rootFields() {
		if reflect.DeepEqual(s.value(old), s.value(new)) {
			continue
		}
		if s.live {
			live = append(live, s.name)
		} else {
			restart = append(restart, s.name)
		}
	}
	return live, restart
}

// rootField is a setting outside the servers.
type rootField struct {
	name  string // in the spelling of the file
	live  bool   // it can change while the bridge runs
	value func(*Config) any
}

func rootFields() []rootField {
	return []rootField{
		{"listen", false, func(c *Config) any { return c.Listen }},
		{"allowedHosts", true, func(c *Config) any { return orNil(c.AllowedHosts) }},
		{"allowedOrigins", true, func(c *Config) any { return orNil(c.AllowedOrigins) }},
		{"stateDir", false, func(c *Config) any { return c.StateDir }},
		{"control", false, func(c *Config) any { return c.Control }},
		{"keys", false, func(c *Config) any { return orNil(c.Keys) }},
		{"limits.bodyBytes", true, func(c *Config) any { return c.Limits.BodyBytes }},
		{"limits.bodyTotalBytes", true, func(c *Config) any { return c.Limits.BodyTotal }},
		{"limits.lineBytes", true, func(c *Config) any { return c.Limits.LineBytes }},
		{"limits.sessions", true, func(c *Config) any { return c.Limits.Sessions }},
		{"limits.processes", true, func(c *Config) any { return c.Limits.Processes }},
		{"limits.sessionIdle", true, func(c *Config) any { return c.Limits.SessionIdle }},
		{"limits.sessionLife", true, func(c *Config) any { return c.Limits.SessionLife }},
		{"limits.queueWait", true, func(c *Config) any { return c.Limits.QueueWait }},
		{"limits.shutdown", true, func(c *Config) any { return c.Limits.Shutdown }},
		{"log.level", true, func(c *Config) any { return c.Log.Level }},
		{"log.file", false, func(c *Config) any { return c.Log.File }},
		{"log.maxMB", false, func(c *Config) any { return c.Log.MaxMB }},
		{"log.keep", false, func(c *Config) any { return c.Log.Keep }},
	}
}

// orNil makes an empty list and none the same.
func orNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return slices.Clip(list)
}

func orNilMap[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}
