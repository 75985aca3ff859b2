package config

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Case 94: what a name may be, at the limits too.
func TestNames(t *testing.T) {
	long := strings.Repeat("ß", MaxNameRunes)
	for name, good := range map[string]bool{
		"a": true, "a.b": true, "A_b-9": true, "9": true, "My Server (2)": true, "größe": true, ".a": true, "-a": true, "a%2e": true, "...": true,
		"日本語": true, "a?b#c": true, "<b>&\u00a0x": true, long: true,
		long + "a": false, "": false, "a/b": false, "..": false, ".": false, `a\\b`: false, " a": false, "a ": false, "a\u00a0": false,
		`a\nb`: false, `a\u0000b`: false, `a\u007fb`: false, `a\u009fb`: false, `\ud800`: false, "/": false, `\t`: false,
	} {
		text := `{"mcpServers":{"` + name + `":{"command":"x"}}}`
		c, _, err := parse(t, text)
		if err != nil {
			t.Fatal(err)
		}
		if (c.Servers[0].Problem == nil) != good {
			t.Errorf("%q: %v", name, c.Servers[0].Problem)
		}
		if err := validate(t, text); good && err != nil {
			t.Errorf("the schema refuses %q: %v", name, err)
		} else if !good && err == nil && !strings.Contains(name, "\u00a0") && name != `\ud800` { // spaces beyond ASCII are not told apart in all schemas
			t.Errorf("the schema takes %q", name)
		}
	}
	c, _, _ := parse(t, `{"mcpServers":{"a/b":{"command":"x"}}}`)
	contains(t, problem(c.Servers[0]), `c.json:1:22: mcpServers.a/b: the name "a/b" cannot be used; a name has 1 to 64 characters, none of them a slash, a backslash or a control character, no space at its ends, and is not "." or ".."`)
}

// Case 94: names that are equal when folded are refused, across both keys of servers.
func TestEqualNames(t *testing.T) {
	for _, c := range []struct{ first, second string }{
		{"Files", "files"}, {"größe", "GRÖSSE"}, {"größe", "gro\u0308ße"}, {"É", "e\u0301"}, {"ΣΑΣ", "σας"}, {"ﬁle", "FILE"},
	} {
		config, _, err := parse(t, `{"mcpServers":{"`+c.first+`":{"command":"x"},"`+c.second+`":{"command":"x"},"other":{"command":"x"}}}`)
		if err != nil || config.Servers[0].Problem != nil || config.Servers[2].Problem != nil {
			t.Fatal(config, err)
		}
		contains(t, problem(config.Servers[1]), `have names that are equal or differ in case only; rename one`)
	}
	for _, c := range []struct{ first, second string }{{"a", "b"}, {"a b", "ab"}, {"a%20b", "a b"}, {"größe", "grosse"}, {"a.b", "a_b"}} {
		config, _, err := parse(t, `{"mcpServers":{"`+c.first+`":{"command":"x"},"`+c.second+`":{"command":"x"}}}`)
		if err != nil || config.Servers[1].Problem != nil {
			t.Error(c, problem(config.Servers[1]), err)
		}
	}
	c, _, err := parse(t, `{"mcpServers":{"Files":{"command":"x"},"files":{"command":"x"}},"servers":{"Files":{"command":"x"}}}`)
	if err != nil || c.Servers[0].Problem != nil {
		t.Fatal(c, err)
	}
	contains(t, problem(c.Servers[1]), `c.json:1:48: servers "Files" and "files" have names that are equal or differ in case only; rename one`)
	contains(t, problem(c.Servers[2]), `servers "Files" and "Files"`)
}

// Case 94: the path of a name leads back to it, in one segment, and is not cleaned away.
func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"a": "a", "My Server (2)": "My%20Server%20%282%29", "größe": "gr%C3%B6%C3%9Fe", "a.b": "a.b", "a%2e": "a%252e", "...": "...", "a?b#c": "a%3Fb%23c", "a;b": "a%3Bb",
	} {
		s := Server{Name: name}
		if s.Path() != want {
			t.Errorf("%q: %s, want %s", name, s.Path(), want)
		}
		u, err := url.Parse("http://h/servers/" + s.Path() + "/mcp")
		if err != nil || u.Path != "/servers/"+name+"/mcp" {
			t.Errorf("%q: %v, %v", name, u, err)
		}
		var got string
		mux := http.NewServeMux()
		mux.HandleFunc("/servers/{name}/mcp", func(_ http.ResponseWriter, r *http.Request) { got = r.PathValue("name") })
		mux.ServeHTTP(nil, &http.Request{Method: "GET", URL: u, Host: "h", RequestURI: u.RequestURI()})
		if got != name {
			t.Errorf("%q is routed as %q", name, got)
		}
	}
}
