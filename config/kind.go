package config

// kind is a transport as an entry names it.
type kind struct {
	at   node
	text string
}

// kinds are the spellings of transports that hosts write, and what they mean here.
var kinds = map[string]string{
	"stdio": "stdio", "local": "stdio",
	"http": "http", "streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "remote": "http",
	"sse": TransportSSE,
}

// readType takes the name of a transport.
func (e *entry) readType(n node) {
	text, ok := n.text()
	if !ok {
		return
	}
	if kinds[text] == "" {
		n.warn("the transport %q is not known, and not used: command makes a local server, url a remote one", text)
		return
	}
	e.kind = &kind{n, text}
}

// checkType compares the transport with what the entry is.
func (e *entry) checkType() {
	if e.kind == nil {
		return
	}
	meant := kinds[e.kind.text]
	switch {
	case e.URL != "" && meant == "stdio" || e.Command != "" && meant != "stdio":
		e.kind.at.warn("%q is not used: command makes a local server, url a remote one", e.kind.text)
	case e.URL != "" && meant == TransportSSE:
		e.Transport = TransportSSE
	}
}
