package front

import (
	"net/http"
	"strings"
)

// What browsers of allowed origins may send and read (ORG-07, case 39). Credentials are never allowed: tokens travel in
// Authorization, which the page sets itself.
const (
	corsMethods = "GET, POST, DELETE, OPTIONS"
	corsHeaders = "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID"
	corsExposed = "Mcp-Session-Id, WWW-Authenticate"
	corsMaxAge  = "600" // seconds a browser may keep the answer to a preflight

	paramPrefixLower = "mcp-param-"
	// maxAskedParams bounds how many Mcp-Param-* names of one preflight are granted.
	maxAskedParams = 100
)

// Preflight answers an OPTIONS request and reports whether r was one: 204 with CORS headers for an allowed origin, 204
// with Allow when no browser asks, 403 for a foreign Host or Origin (ORG-01). It runs before authentication, since a
// preflight carries no token (case 39).
func (g *Guard) Preflight(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodOptions {
		return false
	}
	h := w.Header()
	if refusal := g.Check(r); refusal != nil {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(refusal.HTTPStatus())
		// The browser has gone when this fails; there is nobody left to tell.
		_, _ = w.Write(refusal.Body(false))
		return true
	}
	h.Set("Allow", corsMethods)
	if len(r.Header[headerOrigin]) > 0 {
		g.AddCORS(w, r)
		h.Add("Vary", "Access-Control-Request-Headers")
		h.Set("Access-Control-Allow-Methods", corsMethods)
		h.Set("Access-Control-Allow-Headers", corsHeaders+askedParams(r.Header["Access-Control-Request-Headers"]))
		h.Set("Access-Control-Max-Age", corsMaxAge)
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// AddCORS adds the CORS headers of an ordinary answer when the request comes from a page of an allowed origin, and
// nothing otherwise. Call it before the answer's header is written, for errors too, so that the page can read them.
func (g *Guard) AddCORS(w http.ResponseWriter, r *http.Request) {
	origin := r.Header[headerOrigin]
	if len(origin) == 0 {
		return
	}
	h := w.Header()
	h.Add("Vary", headerOrigin)
	if !g.originsAllowed(origin) {
		return
	}
	h.Set("Access-Control-Allow-Origin", origin[0])
	h.Set("Access-Control-Expose-Headers", corsExposed)
}

// askedParams returns the Mcp-Param-* names of a preflight, each behind ", ": they cannot be listed beforehand, and a
// wildcard would grant everything else too (ORG-07).
func askedParams(values []string) string {
	var b strings.Builder
	granted := 0
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			name = strings.Trim(name, " \t")
			if granted == maxAskedParams || !isParamHeader(name) {
				continue
			}
			granted++
			b.WriteString(", ")
			b.WriteString(name)
		}
	}
	return b.String()
}

func isParamHeader(name string) bool {
	if len(name) <= len(paramPrefixLower) || !strings.EqualFold(name[:len(paramPrefixLower)], paramPrefixLower) {
		return false
	}
	for i := range len(name) {
		if !tokenByte(name[i]) {
			return false
		}
	}
	return true
}

// tokenByte reports whether c may stand in a token (RFC 9110 section 5.6.2).
func tokenByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c < 0x80 && strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
