package demo

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"mcpbridge/bridge/mcp"
)

// request is a message that wants an answer, with all that is known about the terms it is served under.
type request struct {
	id      jsontext.Value
	key     string // idKey of id
	method  string
	params  jsontext.Value
	version mcp.Version
	caps    jsontext.Value // capabilities of the client: of this request or of the session
	level   mcp.Level      // log messages this request wants at least
	token   jsontext.Value // progress token, nil if none
	batch   *batch
	fresh   bool               // the result changes all the time: nothing to cache
	cancel  context.CancelFunc // set by begin
}

func (r *request) modern() bool { return r.version.Era() == mcp.Modern }

type meta map[string]jsontext.Value

// classify decides the era of a request by its own words and checks what that era asks of every request. The request is
// good for carrying an error even when one is returned.
func (s *server) classify(m message) (*request, *rpcError) {
	r := &request{id: m.ID, key: idKey(m.ID), method: m.method, params: m.Params, level: mcp.NoLevel}
	var params struct {
		Meta meta `json:"_meta"`
	}
	if err := decode(m.Params, &params); err != nil {
		return r, invalidParams("_meta must be an object")
	}
	if token := params.Meta[mcp.MetaProgressToken]; token != nil {
		if !validID(token) {
			return r, invalidParams("progressToken must be a string or an integer")
		}
		r.token = token
	}
	_, enveloped := params.Meta[mcp.MetaProtocolVersion]
	switch {
	case s.opts.LegacyOnly:
		return r, s.admitLegacy(r, nil)
	case enveloped:
		return r, s.admitModern(r, params.Meta)
	case s.opts.ModernOnly:
		return r, refuseLegacy(r)
	}
	return r, s.admitLegacy(r, params.Meta)
}

// admitModern checks in the order of HTTP-M-41: metadata, version, method.
func (s *server) admitModern(r *request, m meta) *rpcError {
	var version string
	if m[mcp.MetaProtocolVersion].Kind() != '"' || decode(m[mcp.MetaProtocolVersion], &version) != nil {
		return invalidParams("_meta %s must be a string", mcp.MetaProtocolVersion)
	}
	if m[mcp.MetaClientCapabilities].Kind() != '{' {
		return invalidParams("_meta %s is missing or not an object", mcp.MetaClientCapabilities)
	}
	if info := m[mcp.MetaClientInfo]; info != nil && info.Kind() != '{' {
		return invalidParams("_meta %s must be an object", mcp.MetaClientInfo)
	}
	if level := m[mcp.MetaLogLevel]; level != nil {
		var name string
		if decode(level, &name) != nil || mcp.ParseLevel(name) == mcp.NoLevel {
			return invalidParams("_meta %s names no log level", mcp.MetaLogLevel)
		}
		r.level = mcp.ParseLevel(name)
	}
	if mcp.Version(version).Era() != mcp.Modern {
		return unsupportedVersion(version)
	}
	r.version, r.caps = mcp.Version(version), m[mcp.MetaClientCapabilities]
	if !serves(r.method, mcp.Modern) {
		return methodNotFound(r.method)
	}
	return nil
}

// refuseLegacy is how a modern-only server answers a request without metadata (META-03, VER-44).
func refuseLegacy(r *request) *rpcError {
	if r.method != mcp.Initialize {
		return invalidParams("_meta with %s and %s is missing", mcp.MetaProtocolVersion, mcp.MetaClientCapabilities)
	}
	var params struct {
		ProtocolVersion jsontext.Value `json:"protocolVersion"`
	}
	var requested string
	if decode(r.params, &params) == nil {
		_ = decode(params.ProtocolVersion, &requested) // anything but a string counts as no version
	}
	return unsupportedVersion(requested)
}

// admitLegacy checks that the request fits the session. m is nil if the server knows no modern keys.
func (s *server) admitLegacy(r *request, m meta) *rpcError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		r.version, r.caps, r.level = s.session.version, s.session.caps, s.session.level
	}
	if !s.opts.LegacyOnly && mcp.TraitsOf(r.method).Only == mcp.Modern && serves(r.method, mcp.Modern) {
		return invalidParams("%s needs _meta with %s", r.method, mcp.MetaProtocolVersion)
	}
	switch {
	case r.method == mcp.Initialize && s.session != nil:
		return invalidRequest("initialize was done already")
	case r.method == mcp.Initialize, r.method == mcp.Ping:
		return nil
	case s.session == nil && m[mcp.MetaClientCapabilities] != nil:
		return invalidParams("_meta %s is missing", mcp.MetaProtocolVersion)
	case s.session == nil && (!s.opts.LegacyOnly || serves(r.method, mcp.Legacy)):
		return invalidRequest("send initialize first")
	case !serves(r.method, mcp.Legacy):
		return methodNotFound(r.method)
	}
	return nil
}

func methodNotFound(method string) *rpcError {
	return errorf(mcp.CodeMethodNotFound, "method not found: %s", method)
}

// unsupportedVersion lists what server/discover lists (DSC-07, HTTP-M-21).
func unsupportedVersion(requested string) *rpcError {
	failure := errorf(mcp.CodeUnsupportedProtocolVersion, "unsupported protocol version %q", requested)
	failure.Data = object{"supported": mcp.ModernVersions(), "requested": requested}
	return failure
}

// dress adds what the era wants in a result: nothing in the legacy one, result type, server identity and caching hints
// in the modern one (FRM-21, META-10, CCH-01).
func (r *request) dress(s *server, result object) object {
	if result == nil || !r.modern() {
		return result
	}
	if result["resultType"] == nil {
		result["resultType"] = mcp.ResultComplete
	}
	about, _ := result["_meta"].(object)
	if about == nil {
		about = object{}
		result["_meta"] = about
	}
	about[mcp.MetaServerInfo] = s.identity(r.version)
	if mcp.TraitsOf(r.method).Cacheable && result["resultType"] == mcp.ResultComplete {
		result["ttlMs"], result["cacheScope"] = 60_000, "public"
		if r.fresh {
			result["ttlMs"] = 0
		}
	}
	return result
}
