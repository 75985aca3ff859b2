package era

import (
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// DiscoverOptions say what the bridge can honour of a legacy server's handshake, and with which caching hints the
// discovery result goes out.
type DiscoverOptions struct {
	TTLMs int    // milliseconds
	Scope string // "public", or private for anything else

	// KeepListChanged and KeepSubscribe keep the flags of that name: only a bridge whose link lives on may promise them
	// (translation 2.2).
	KeepListChanged, KeepSubscribe bool
	// Tasks is "bridge" if the bridge drives legacy tasks for clients of the extension; anything else is off.
	Tasks string
	// Completions adds the capability to that of a 2024-11-05 server, which had no way to declare it (FEA-11).
	Completions bool
	// Withdrawn are capabilities whose list method turned out to be missing (DSC-05).
	Withdrawn []string
}

// ServerCapabilitiesToModern maps the capabilities object of an initialize result (translation 2.2). Values pass byte
// for byte; a capability that is null or false counts as absent, true as an empty object.
func ServerCapabilitiesToModern(caps []byte, o DiscoverOptions) []byte {
	var out, extensions object
	var completions bool
	each(caps, func(name string, v []byte) {
		if o.withdrawn(name) {
			return
		}
		switch name {
		case "tools", "prompts", "resources":
			out.add(name, o.flags(name, v))
		case "completions":
			completions = true
			out.add(name, v)
		case "logging", "experimental":
			out.add(name, v)
		case "extensions":
			carry(&extensions, v)
		}
	})
	if o.Completions && !completions && !o.withdrawn("completions") {
		out.add("completions", emptyObject)
	}
	if o.Tasks == "bridge" && HasCapability(caps, "tasks", "requests", "tools", "call") {
		extensions.add(mcp.ExtensionTasks, emptyObject)
	}
	if !extensions.empty() {
		out.add("extensions", extensions.bytes())
	}
	return out.bytes()
}

func (o DiscoverOptions) withdrawn(name string) bool {
	for _, w := range o.Withdrawn {
		if w == name {
			return true
		}
	}
	return false
}

// flags drops what the bridge cannot deliver.
func (o DiscoverOptions) flags(name string, v []byte) []byte {
	var drop []string
	if !o.KeepListChanged {
		drop = append(drop, "listChanged")
	}
	if !o.KeepSubscribe && name == "resources" {
		drop = append(drop, "subscribe")
	}
	return without(v, drop...)
}

// ServerCapabilitiesToLegacy maps the capabilities object of a discovery result (translation 2.1): flags stay, since the
// bridge listens upstream; tasks are never offered.
func ServerCapabilitiesToLegacy(caps []byte) []byte {
	return carried(caps, func(name string, v []byte) []byte {
		switch name {
		case "tools", "prompts", "resources", "logging", "completions", "experimental":
			return v
		}
		return nil
	})
}

// ClientCapabilitiesToModern maps what a legacy client declared into the envelope (translation 2.1): roots.listChanged
// and tasks do not exist there (CLF-13), an empty elicitation stays empty and means forms (CLF-01).
func ClientCapabilitiesToModern(caps []byte) []byte {
	return carried(caps, func(name string, v []byte) []byte {
		switch name {
		case "elicitation", "sampling", "experimental":
			return v
		case "roots":
			return without(v, "listChanged")
		}
		return nil
	})
}

// ClientCapabilitiesToLegacy maps what a modern client declared into the bridge's own initialize (translation 2.2): an
// empty elicitation is written out as forms, roots.listChanged is never promised.
func ClientCapabilitiesToLegacy(caps []byte) []byte {
	return carried(caps, func(name string, v []byte) []byte {
		switch name {
		case "elicitation":
			if isEmpty(v) {
				return []byte(`{"form":{}}`)
			}
			return v
		case "sampling", "experimental":
			return v
		case "roots":
			return without(v, "listChanged")
		}
		return nil
	})
}

// carried builds an object of the members pick returns a value for, in their order, and of the extensions that cross.
func carried(caps []byte, pick func(name string, v []byte) []byte) []byte {
	var out object
	each(caps, func(name string, v []byte) {
		if name != "extensions" {
			out.addSome(name, pick(name, v))
			return
		}
		var ext object
		carry(&ext, v)
		if !ext.empty() {
			out.add(name, ext.bytes())
		}
	})
	return out.bytes()
}

// carry copies the extensions that mean the same in both eras (EXT-03): Apps needs nothing but transparency.
func carry(out *object, extensions []byte) {
	each(extensions, func(name string, v []byte) {
		if name == mcp.ExtensionApps {
			out.add(name, v)
		}
	})
}

// each calls f with every member of an object of capabilities that is declared: an object, or true. Of members with one
// name the first counts, as it does for HasCapability.
func each(caps []byte, f func(name string, v []byte)) {
	if !framing.IsObject(caps) {
		return
	}
	members := framing.Members(caps, whole(caps))
	for _, m := range members {
		name := string(nameOf(caps, m))
		if first, _ := framing.Lookup(caps, members, name); first != m.Value {
			continue
		}
		v := caps[m.Value.Start:m.Value.End]
		switch {
		case framing.IsObject(v):
			f(name, own(v))
		case string(v) == "true":
			f(name, emptyObject)
		}
	}
}

// HasCapability reports whether the raw capabilities declare the feature at path: present, not null and not false.
func HasCapability(caps []byte, path ...string) bool {
	for _, name := range path {
		if caps = member(caps, name); caps == nil {
			return false
		}
	}
	return len(caps) > 0 && !framing.IsNull(caps) && string(caps) != "false"
}

// covers reports whether the client declared everything a server requires (META-09). An empty elicitation declares forms.
func covers(declared, required []byte) bool {
	all := true
	each(required, func(name string, want []byte) {
		have := member(declared, name)
		if name == "elicitation" && isEmpty(have) {
			have = []byte(`{"form":{}}`)
		}
		all = all && HasCapability(have) && covers(have, want)
	})
	return all
}
