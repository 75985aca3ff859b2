package config

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"mcpbridge/bridge/mcp"
)

// entry is a server being read.
type entry struct {
	Server
	node
	problems Errors
	enabled  *bool // the foreign spelling of disabled
	kind     *kind // what type says
	listed   bool  // it stands in a list, with its name in it
}

// readServer reads one entry. What is wrong with it becomes its Problem.
func (n node) readServer(name string, listed bool) Server {
	e, keys := n.file.blankEntry()
	*e = entry{Server: newServer(name), node: node{file: n.file, value: n.value, path: n.path, errs: &e.problems}, listed: listed}
	e.shown.offset = n.value.StartOffset
	if !validName(name) {
		e.fail("the name %q cannot be used; a name has 1 to %d characters, none of them a slash, a backslash or a control character, no space at its ends, and is not \".\" or \"..\"", name, MaxNameRunes)
	}
	e.read(keys, func(m member) { e.foreign(m, keys) })
	e.settle()
	return e.Server
}

// blankEntry is the entry that all are read into, one after the other, so that its table of keys is made once.
func (f *file) blankEntry() (*entry, settings) {
	if f.entry == nil {
		f.entry = &entry{Server: newServer("")}
		f.entryKeys = f.entry.keys()
	}
	return f.entry, f.entryKeys
}

func (s *Server) addProblem(err *Error) {
	problems, _ := s.Problem.(Errors)
	s.Problem = append(problems, err)
}

// keys says what each key of an entry means.
func (e *entry) keys() settings {
	keys := settings{}
	for _, part := range []settings{e.commandKeys(), e.remoteKeys(), e.processKeys(), e.protocolKeys(), e.askKeys(), laterKeys()} {
		for name, one := range part {
			keys[name] = one
		}
	}
	return keys
}

func (e *entry) commandKeys() settings {
	variables := mapOf(shape{"type": []string{"string", "number"}})
	variables["propertyNames"] = shape{"pattern": "^[^=]+$"}
	return settings{
		"command": {e.readCommand, anyOf(shape{"type": "string", "minLength": 1}, shape{"type": "array", "items": shape{"type": "string"}, "minItems": 1}, shape{"type": "object"}),
			"Program of a local server: its path, or a name that is looked up in PATH. It is started directly, no shell splits or expands anything; arguments go to args."},
		"args": {e.readArgs, list(nil), "Arguments of the program, one by one."},
		"env": {e.readEnv, variables,
			"Environment variables for the server, besides the few that every program needs."},
		"cwd":        {func(n node) { e.Cwd, e.shown.cwd = n.expanded() }, shape{"type": "string"}, "Folder to start the server in."},
		"inheritEnv": boolean(&e.InheritEnv, "Give the server the whole environment of the bridge, without the variables that begin with MCPBRIDGE_."),
		"disabled":   boolean(&e.Disabled, "Leave the server out."),
		"required":   boolean(&e.Required, "The bridge is ready (/readyz) only if this server can be used."),
	}
}

func (e *entry) remoteKeys() settings {
	headers := mapOf(shape{"type": "string", "pattern": `^[^\r\n]*$`})
	headers["propertyNames"] = shape{"pattern": tokenPattern}
	return settings{
		"url":     {e.readURL, shape{"type": "string", "minLength": 1}, "Address of a remote server, instead of a command."},
		"headers": {e.readHeaders, headers, "HTTP headers for every request to a remote server."},
		"type": {e.readType, shape{"type": "string"},
			"Transport, as hosts write it: stdio beside a command; http or sse beside a url. It is found out anyhow; sse saves some requests."},
		"proxy":      {e.readProxy, shape{"type": "string"}, "Proxy on the way to a remote server, as an http, https or socks5 URL. Without it the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the bridge's environment count."},
		"caFile":     pem(&e.Way.CAFile, "PEM file with certificates that are trusted for a remote server beside those of the system."),
		"clientCert": pem(&e.Way.ClientCert, "PEM file with the certificate that is shown to a remote server; clientKey goes with it."),
		"clientKey":  pem(&e.Way.ClientKey, "PEM file with the key of clientCert."),
		"insecure":   {e.readInsecure, shape{"type": "boolean", "default": false}, "Do not check the certificate of a remote server: whoever sits between can read and change everything."},
		"allowHttp":  boolean(&e.AllowHTTP, "Take a url that begins with http:// although it leads beyond this machine, where others can read along."),
	}
}

// maxSpare bounds the processes kept ahead of use.
const maxSpare = 8

func (e *entry) processKeys() settings {
	return settings{
		"isolation": {e.readIsolation, anyOf(shape{"type": "string", "enum": isolations()}, shape{"type": "object"}),
			"Who shares a process of the server: session gives each session its own, principal each caller, shared one to all, request one to each request. " +
				"Without it sessions have their own and callers without a session share by caller."},
		"lazy": {func(n node) {
			if v, ok := n.boolean(); ok {
				e.Lazy = &v
			}
		}, shape{"type": "boolean"}, "Start the server when it is first needed (true), or with the bridge (false)."},
		"spare":        integer(&e.Spare, 0, maxSpare, "Processes kept started ahead of use, so that nobody waits for a slow start."),
		"maxProcesses": integer(&e.MaxProcesses, 1, 1000, "Processes of this server alive at once. More requests wait, see limits.queueWait."),
		"idleStop":     duration(&e.IdleStop, maxDuration, "A process that is not used for so long is stopped."),
		"startTimeout": duration(&e.StartTimeout, maxDuration, "From the start of a process to its first answer. Programs that are downloaded first need long."),
		"restart":      object(restartKeys(&e.Restart), "How a server that ended is started again."),
	}
}

func (e *entry) protocolKeys() settings {
	timeout := setting{e.readTimeout, anyOf(durationShape(spell(e.Timeout)), shape{"type": "number", "deprecated": true}), "Longest time for one request."}
	return settings{
		"timeout":  timeout,
		"protocol": {e.readProtocol, shape{"type": "string", "enum": append([]string{"auto", "modern", "legacy"}, foreignProtocols()...), "default": e.Protocol}, "Era of the protocol the server speaks; auto finds out."},
		"sse":      boolean(&e.SSE, "Serve the HTTP+SSE transport of 2024-11-05 too, at /servers/NAME/sse."),
		"mirror": {func(n node) { e.Mirror = readMirror(n) }, mapOf(mapOf(shape{"type": "string", "pattern": tokenPattern})),
			`Arguments of tools that clients also send as HTTP headers: tool, then path of the property, then name of the header without "Mcp-Param-".`},
		"cache":    object(cacheKeys(&e.Cache), "Caching hint for results of servers that give none."),
		"logLevel": oneOf(&e.LogLevel, "Least severe messages asked of the server.", levelNames()...),
	}
}

func restartKeys(r *Restart) settings {
	return settings{
		"initial":    duration(&r.Initial, maxDuration, "First pause."),
		"max":        duration(&r.Max, maxDuration, "Longest pause."),
		"resetAfter": duration(&r.ResetAfter, maxDuration, "After so long without an end the pauses begin anew."),
		"breaker": {func(n node) { r.readBreaker(n) }, shape{"type": "string", "pattern": `^[1-9][0-9]{0,3}/` + durationPattern[1:], "not": shape{"pattern": "/[^1-9]*$"}, "default": r.Breaker},
			`"N/TIME": a server that ended N times within the time is left alone for the longest pause.`},
	}
}

// readBreaker wants "N/DURATION".
func (r *Restart) readBreaker(n node) {
	text, ok := n.text()
	if !ok {
		return
	}
	number, per, ok := strings.Cut(text, "/")
	count, err := strconv.Atoi(number)
	if !ok || err != nil || strconv.Itoa(count) != number || count < 1 || count > 1000 {
		n.fail(`%q must be a count from 1 to 1000 and a duration, such as "5/60s"`, text)
		return
	}
	if window, ok := n.duration(per, maxDuration); ok {
		r.Breaker, r.BreakerCount, r.BreakerWindow = text, count, window
	}
}

func cacheKeys(c *Cache) settings {
	return settings{
		"ttlMs": integer(&c.TTLMs, 0, maxInt, "How long results may be kept, in milliseconds."),
		"scope": oneOf(&c.Scope, "Who may keep them: the caller only, or anybody.", "private", "public"),
	}
}

func levelNames() []string {
	var list []string
	for level := mcp.ParseLevel("debug"); level <= mcp.ParseLevel("emergency"); level++ {
		list = append(list, level.String())
	}
	return list
}

// readTimeout takes a duration. Hosts write bare numbers, some mean seconds and some milliseconds: those are not used.
func (e *entry) readTimeout(n node) {
	if n.kind() == '0' {
		n.warn(`a number without unit is not used; write a duration such as "5m"`)
		return
	}
	duration(&e.Timeout, maxDuration, "").read(n)
}

// settle checks what only the whole entry can tell.
func (e *entry) settle() {
	if e.enabled != nil && !*e.enabled {
		e.Disabled = true
	}
	switch {
	case e.Command == "" && e.URL == "" && len(e.problems) == 0:
		e.fail("needs command (a local server) or url (a remote one)")
	case e.Command != "" && e.URL != "":
		e.fail("has both command and url; remove one")
	}
	if e.Restart.Initial > e.Restart.Max {
		e.fail("restart: initial is longer than max")
	}
	e.checkPlainHTTP()
	e.checkType()
	e.checkWay()
	if e.Command != "" {
		e.checkCommandLine()
		e.checkContainer()
	}
	switch {
	case len(e.problems) == 0:
	case e.Disabled:
		for _, problem := range e.problems {
			e.file.warnings = append(e.file.warnings, Warning{File: problem.File, Line: problem.Line, Col: problem.Col, Text: problem.Text + " (the server is disabled)"})
		}
		e.Problem = nil
	default:
		e.Problem = e.problems
	}
}

func (e *entry) readURL(n node) {
	e.URL, e.shown.url = n.expanded()
	if e.URL == "" {
		return
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		n.fail(`must be a URL that starts with "https://" or "http://" and has a host`)
	case u.User != nil:
		n.fail("must not hold a user name or password; use headers")
	case u.Fragment != "":
		n.fail("must not have a fragment")
	}
}

// checkPlainHTTP refuses to send anything in the clear beyond this machine unless that is meant.
func (e *entry) checkPlainHTTP() {
	u, err := url.Parse(e.URL)
	if err != nil || u.Scheme != "http" || e.AllowHTTP || Loopback(u.Hostname()+":0") || Loopback("["+u.Hostname()+"]:0") {
		return
	}
	e.fail(`url: plain http beyond this machine is readable for others; use https or set "allowHttp": true`)
}

// readMirror reads tool, property path, header name (XMH-03, XMH-05).
func readMirror(n node) map[string]map[string]string {
	tools := map[string]map[string]string{}
	for _, tool := range n.members() {
		headers := map[string]string{}
		used := map[string]bool{}
		for _, property := range tool.members() {
			header, ok := property.text()
			if !ok {
				continue
			}
			if !isToken(header) {
				property.fail("%q cannot be part of a header name; use letters, digits and dashes", header)
				continue
			}
			if used[strings.ToLower(header)] {
				property.fail("header %q is used twice for this tool", header)
				continue
			}
			used[strings.ToLower(header)] = true
			headers[property.name] = header
		}
		tools[tool.name] = headers
	}
	return tools
}

// tokenPattern is what isToken takes.
const tokenPattern = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$"

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		alphanumeric := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// spell writes a duration the way the file spells it.
func spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
