package demo

import (
	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

const instructions = "A demonstration server. Try echo, add or countdown; touch changes the resource demo://clock."

// identity is what the server says about itself in the words of a revision.
func (s *server) identity(v mcp.Version) object {
	info := object{"name": "mcpbridge-demo", "version": s.opts.Version}
	if titles(v) {
		info["title"] = "mcpbridge demo server"
	}
	return info
}

// titles came with 2025-06-18.
func titles(v mcp.Version) bool { return v.AtLeast(mcp.V20250618) }

// capabilities names exactly what is served (DSC-05, FEA-11). Lists never change, so no list has listChanged.
func capabilities(v mcp.Version) object {
	caps := object{
		"tools":     object{},
		"prompts":   object{},
		"resources": object{"subscribe": true},
		"logging":   object{},
	}
	if v.AtLeast(mcp.V20250326) {
		caps["completions"] = object{}
	}
	return caps
}

// discover serves server/discover (DSC-02).
func (s *server) discover(r *request) (object, *rpcError) {
	return object{
		"supportedVersions": mcp.ModernVersions(),
		"capabilities":      capabilities(r.version),
		"instructions":      instructions,
	}, nil
}

// initialize opens the legacy session (LEG-01, LEG-02, VER-41).
func (s *server) initialize(r *request) (object, *rpcError) {
	var params struct {
		ProtocolVersion jsontext.Value `json:"protocolVersion"`
		Capabilities    jsontext.Value `json:"capabilities"`
		ClientInfo      jsontext.Value `json:"clientInfo"`
	}
	var requested string
	if decode(r.params, &params) != nil || params.ProtocolVersion.Kind() != '"' ||
		decode(params.ProtocolVersion, &requested) != nil {
		return nil, invalidParams("protocolVersion must be a string")
	}
	if params.Capabilities.Kind() != '{' || params.ClientInfo.Kind() != '{' {
		return nil, invalidParams("capabilities and clientInfo must be objects")
	}
	version := s.negotiate(requested)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = &session{
		version:    version,
		caps:       params.Capabilities,
		level:      mcp.ParseLevel("info"), // until setLevel the server chooses (LOG-05)
		ready:      make(chan struct{}),
		subscribed: map[string]bool{},
	}
	return object{
		"protocolVersion": version,
		"capabilities":    capabilities(version),
		"serverInfo":      s.identity(version),
		"instructions":    instructions,
	}, nil
}

func (s *server) negotiate(requested string) mcp.Version {
	if v := mcp.NegotiateLegacy(requested); s.opts.Newest.AtLeast(v) {
		return v
	}
	return s.opts.Newest
}

// initialized lets the server speak unasked (LEG-04).
func (s *server) initialized() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil && !s.session.isReady {
		s.session.isReady = true
		close(s.session.ready)
	}
}

// setLevel serves logging/setLevel (LOG-03, LOG-05).
func (s *server) setLevel(r *request) (object, *rpcError) {
	var params struct {
		Level string `json:"level"`
	}
	if decode(r.params, &params) != nil || mcp.ParseLevel(params.Level) == mcp.NoLevel {
		return nil, invalidParams("level names no log level")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.level = mcp.ParseLevel(params.Level)
	return object{}, nil
}
