package config

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// MaxNameRunes is how many characters the name of a server may have.
const MaxNameRunes = 64

// namePattern is what validName takes, "." and ".." apart.
const namePattern = `^[^\s/\\\x00-\x1f\x7f-\x9f]([^/\\\x00-\x1f\x7f-\x9f]*[^\s/\\\x00-\x1f\x7f-\x9f])?$`

// Path is the name as one segment of a URL path, percent-encoded (case 94).
func (s *Server) Path() string { return url.PathEscape(s.Name) }

// validName reports whether a name can be part of a URL and be shown: 1 to MaxNameRunes characters of valid UTF-8, no
// control characters, no slashes of either kind, no space at an end, and not one of the two names that stand for folders.
func validName(name string) bool {
	for _, c := range name {
		if c == utf8.RuneError || c == '/' || c == '\\' || unicode.IsControl(c) {
			return false
		}
	}
	return name != "" && name != "." && name != ".." && utf8.RuneCountInString(name) <= MaxNameRunes && strings.TrimSpace(name) == name
}

// folded is the same for names that people, file systems and caches do not tell apart: those that are equal but for case
// and for how their characters are composed.
func folded(name string) string { return norm.NFC.String(cases.Fold().String(norm.NFC.String(name))) }

// readServers takes the entries of an object, or of a list whose entries have a name.
func (f *file) readServers(n node, c *Config) {
	if n.kind() != '[' {
		for _, m := range n.members() {
			f.addServer(m.node, m.name, false, c)
		}
		return
	}
	n.warn("a list is read as an object whose keys are the names")
	for _, e := range n.elements() {
		name := e.member("name")
		text := ""
		if name.kind() == '"' {
			text = name.literal()
		}
		f.addServer(e, text, true, c)
	}
}

func (f *file) addServer(n node, name string, listed bool, c *Config) {
	if len(c.Servers) == MaxServers {
		n.fail("more than %d servers", MaxServers)
	}
	if len(c.Servers) < MaxServers {
		c.Servers = append(c.Servers, n.readServer(name, listed))
	}
}

// checkNames refuses a second server whose name is the same as an earlier one when folded.
func (f *file) checkNames(servers []Server) {
	first := map[string]string{}
	for i := range servers {
		s := &servers[i]
		name := folded(s.Name)
		if earlier, ok := first[name]; ok && s.Name != "" {
			s.addProblem(f.errorAt(s.shown.offset, "servers %q and %q have names that are equal or differ in case only; rename one", earlier, s.Name))
			continue
		}
		first[name] = s.Name
	}
}
