package config

import "net/url"

// pem takes the path of a file with certificates or a key.
func pem(dst *string, doc string) setting {
	return setting{func(n node) { *dst = n.absolute() }, shape{"type": "string", "minLength": 1}, doc + " An absolute path."}
}

// readProxy takes the URL of a proxy.
func (e *entry) readProxy(n node) {
	e.Way.Proxy, e.shown.proxy = n.expanded()
	u, err := url.Parse(e.Way.Proxy)
	if e.Way.Proxy != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5") {
		n.fail(`must be a URL that starts with "http://", "https://" or "socks5://" and has a host`)
	}
}

// readInsecure takes a switch that nobody should forget.
func (e *entry) readInsecure(n node) {
	var ok bool
	if e.Way.Insecure, ok = n.boolean(); ok && e.Way.Insecure {
		n.warn("the certificate of the server is not checked: whoever sits between can read and change everything; caFile is the better way")
	}
}

// checkWay wants both halves of a key pair.
func (e *entry) checkWay() {
	if (e.Way.ClientCert == "") != (e.Way.ClientKey == "") {
		e.fail("clientCert and clientKey belong together")
	}
}
