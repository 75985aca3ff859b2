package config

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"mcpbridge/bridge/mcp"
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// entry is a server being read.
type entry struct {
	Server
	node
	problems Errors
	enabled  *bool // the foreign spelling of disabled
}

// readServer reads one entry. What is wrong with it becomes its Problem.
func (n node) readServer(name string) Server {
	e := &entry{Server: newServer(name)}
	e.shown.offset = n.value.StartOffset
	e.node = node{file: n.file, value: n.value, path: n.path, errs: &e.problems}
	if !validName.MatchString(name) {
		e.fail("the name %q cannot be part of a URL; use 1 to 64 letters, digits, dots, dashes and underscores, starting with a letter or digit", name)
	}
	keys := e.keys()
	e.read(keys, func(m member) { e.foreign(m, keys) })
	e.settle()
	return e.Server
}

func (s *Server) addProblem(err *Error) {
	problems, _ := s.Problem.(Errors)
	s.Problem = append(problems, err)
}

// keys says what each key of an entry means.
func (e *entry) keys() setters {
	keys := setters{
		"command":      e.readCommand,
		"args":         e.readArgs,
		"env":          func(n node) { e.Env = n.expandedMap(checkVariable) },
		"cwd":          func(n node) { e.Cwd, e.shown.cwd = n.expanded() },
		"inheritEnv":   setBool(&e.InheritEnv),
		"disabled":     setBool(&e.Disabled),
		"url":          e.readURL,
		"headers":      func(n node) { e.Headers = n.expandedMap(checkHeader) },
		"allowHttp":    setBool(&e.AllowHTTP),
		"isolation":    setOneOf(&e.Isolation, IsolationSession, IsolationPrincipal, IsolationShared, IsolationRequest),
		"lazy":         func(n node) { e.Lazy = new(bool); setBool(e.Lazy)(n) },
		"idleStop":     setDuration(&e.IdleStop),
		"maxProcesses": setInt(&e.MaxProcesses, 1, 1000),
		"required":     setBool(&e.Required),
		"timeout":      e.readTimeout,
		"startTimeout": setDuration(&e.StartTimeout),
		"protocol":     setOneOf(&e.Protocol, "auto", "modern", "legacy"),
		"restart":      func(n node) { n.readStrict(restartKeys(&e.Restart)) },
		"mirror":       func(n node) { e.Mirror = readMirror(n) },
		"cache":        func(n node) { n.readStrict(cacheKeys(&e.Cache)) },
		"logLevel":     setOneOf(&e.LogLevel, levelNames()...),
	}
	for key, set := range laterKeys() {
		keys[key] = set
	}
	return keys
}

func restartKeys(r *Restart) setters {
	return setters{
		"initial":    setDuration(&r.Initial),
		"max":        setDuration(&r.Max),
		"resetAfter": setDuration(&r.ResetAfter),
		"breaker": func(n node) {
			if text, ok := n.text(); ok && n.checkRate(text) {
				r.Breaker = text
			}
		},
	}
}

// checkRate wants "N/DURATION".
func (n node) checkRate(text string) bool {
	var count int
	number, per, ok := strings.Cut(text, "/")
	if _, err := fmt.Sscanf(number, "%d", &count); !ok || err != nil || fmt.Sprint(count) != number || count < 1 || count > 1000 {
		n.fail(`%q must be a count from 1 to 1000 and a duration, such as "5/60s"`, text)
		return false
	}
	_, ok = n.duration(per)
	return ok
}

func cacheKeys(c *Cache) setters {
	return setters{
		"ttlMs": setInt(&c.TTLMs, 0, maxInt),
		"scope": setOneOf(&c.Scope, "private", "public"),
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
	setDuration(&e.Timeout)(n)
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
