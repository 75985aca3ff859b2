package front

import (
	"net/http"
	"net/netip"
	"strings"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// Guard is the first stage of every HTTP front: who may talk to this listener at all, by the name it was called (Host)
// and by the page that calls (Origin). It looks at headers only, so it runs before authentication and before any body
// is read (HTTP-M-41, ORG-*). The zero value allows any host and no browser.
type Guard struct {
	// LoopbackOnly says that the listener is bound to loopback. Host must then be localhost or a loopback address, with
	// any port, or an allowed host (ORG-04): a page that rebinds its DNS name to 127.0.0.1 is refused.
	LoopbackOnly bool
	// AllowedHosts lists further names as "host" (no port, or 80 or 443), "host:port" or "host:*". On a listener that is
	// not bound to loopback a non-empty list turns the check on as well.
	AllowedHosts []string
	// AllowedOrigins lists browser origins as scheme://host[:port]. Scheme and host compare without regard to case,
	// default ports are folded, nothing matches by prefix or suffix (ORG-03). "null" counts only if listed.
	AllowedOrigins []string
	// BodyLimit is the largest request body in bytes, for ReadBody. 0 means DefaultBodyLimit.
	BodyLimit int64
}

const (
	headerOrigin = "Origin"
	// shownLimit is how many bytes of a refused header value an error repeats.
	shownLimit = 100
)

// Check refuses a request whose Host or Origin is not allowed with 403, for every HTTP method (ORG-01, ORG-02, ORG-04).
// The message names the header, its value and the setting to change (case 80).
func (g *Guard) Check(r *http.Request) *bridge.Error {
	if !g.hostAllowed(r.Host) {
		return guardRefusal("Host", r.Host, "allowedHosts")
	}
	if origin := r.Header[headerOrigin]; len(origin) > 0 && !g.originsAllowed(origin) {
		return guardRefusal("Origin", strings.Join(origin, ", "), "allowedOrigins")
	}
	return nil
}

func guardRefusal(header, value, setting string) *bridge.Error {
	if len(value) > shownLimit {
		value = value[:shownLimit] + "..."
	}
	return &bridge.Error{
		Status:  http.StatusForbidden,
		Code:    mcp.CodeInvalidRequest,
		Reason:  bridge.ReasonForbidden,
		Message: header + ` "` + value + `" is not allowed here. If it should be, add it to ` + setting + ` in the configuration.`,
	}
}

func (g *Guard) hostAllowed(hostport string) bool {
	if !g.LoopbackOnly && len(g.AllowedHosts) == 0 {
		return true
	}
	host, port, ok := splitHostPort(hostport)
	if !ok {
		return false
	}
	if loopbackName(host) {
		return true
	}
	for _, allowed := range g.AllowedHosts {
		if hostMatches(allowed, host, port) {
			return true
		}
	}
	return false
}

func hostMatches(allowed, host, port string) bool {
	wild := strings.HasSuffix(allowed, ":*")
	name, wantPort, ok := splitHostPort(strings.TrimSuffix(allowed, ":*"))
	if !ok || !strings.EqualFold(name, host) {
		return false
	}
	switch {
	case wild:
		return true
	case wantPort == "":
		return port == "" || port == "80" || port == "443"
	}
	return wantPort == port
}

// loopbackName reports whether host is localhost or a loopback address literal. Names below localhost do not count: not
// every resolver keeps them on the machine.
func loopbackName(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	if c := host[0]; c != ':' && (c < '0' || c > '9') {
		return false // no loopback address begins so
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// originsAllowed judges all values of the Origin header; a request has at most one.
func (g *Guard) originsAllowed(values []string) bool {
	if len(values) != 1 {
		return false
	}
	for _, allowed := range g.AllowedOrigins {
		if values[0] == "null" && allowed == "null" {
			return true
		}
	}
	o, ok := parseOrigin(values[0])
	if !ok {
		return false
	}
	if g.LoopbackOnly && o.ownLoopback() {
		return true
	}
	for _, allowed := range g.AllowedOrigins {
		if a, ok := parseOrigin(allowed); ok && a.equal(o) {
			return true
		}
	}
	return false
}

// webOrigin is a serialised origin taken apart (RFC 6454 section 6.2). An empty port is the default of the scheme.
type webOrigin struct{ scheme, host, port string }

func parseOrigin(s string) (webOrigin, bool) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found || scheme == "" {
		return webOrigin{}, false
	}
	host, port, ok := splitHostPort(rest)
	if !ok {
		return webOrigin{}, false
	}
	if port == "80" && strings.EqualFold(scheme, "http") || port == "443" && strings.EqualFold(scheme, "https") {
		port = ""
	}
	return webOrigin{scheme, host, port}, true
}

func (o webOrigin) equal(p webOrigin) bool {
	return o.port == p.port && strings.EqualFold(o.scheme, p.scheme) && strings.EqualFold(o.host, p.host)
}

// ownLoopback reports whether the origin is a page served from this machine. The request's Host is never consulted.
func (o webOrigin) ownLoopback() bool {
	if !strings.EqualFold(o.scheme, "http") && !strings.EqualFold(o.scheme, "https") {
		return false
	}
	return strings.EqualFold(o.host, "localhost") || o.host == "127.0.0.1" || o.host == "::1"
}

// splitHostPort takes host[:port] apart; an IPv6 address stands in brackets, which are cut off. User information, paths,
// and anything else that cannot be part of an authority make it fail. One final dot of a name is cut off.
func splitHostPort(s string) (host, port string, ok bool) {
	rest := ""
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", "", false
		}
		host, rest = s[1:end], s[end+1:]
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return "", "", false
		}
	} else {
		colon := strings.IndexByte(s, ':')
		if colon < 0 {
			colon = len(s)
		}
		host, rest = strings.TrimSuffix(s[:colon], "."), s[colon:]
		if host == "" || strings.ContainsAny(host, "@/\\?#[]*, \t") {
			return "", "", false
		}
	}
	if rest == "" {
		return host, "", true
	}
	port = rest[1:]
	return host, port, rest[0] == ':' && portDigits(port)
}

func portDigits(port string) bool {
	if port == "" || len(port) > 5 {
		return false
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
	}
	return true
}
