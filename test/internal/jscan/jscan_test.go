package jscan

import "testing"

func TestGet(t *testing.T) {
	const doc = ` {"a":{"b":[{"c":"x\"}y"},2]},"n":-1.50e3, "s" : "q\\", "t":true,"e":[]} `
	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "b", "0", "c"}, `"x\"}y"`},
		{[]string{"a", "b"}, `[{"c":"x\"}y"},2]`},
		{[]string{"n"}, `-1.50e3`},
		{[]string{"s"}, `"q\\"`},
		{[]string{"t"}, `true`},
		{[]string{"missing"}, ``},
		{[]string{"a", "b", "1"}, ``},
		{[]string{"e", "0"}, ``},
		{[]string{"n", "x"}, ``},
	} {
		if got := string(Get([]byte(doc), c.path...)); got != c.want {
			t.Errorf("Get(%q) = %q, want %q", c.path, got, c.want)
		}
	}
}

func TestGetMalformed(t *testing.T) {
	for _, doc := range []string{``, ` `, `{`, `{"a"`, `{"a":`, `{"a" 1}`, `{"a":"x`, `{"a":[1`, `{"b":1 "a":2}`, `[`} {
		if got := Get([]byte(doc), "a"); got != nil {
			t.Errorf("Get(%q) = %q, want nil", doc, got)
		}
	}
}

func TestText(t *testing.T) {
	for in, want := range map[string]string{`"abc"`: "abc", `""`: "", `12`: "12", ``: ""} {
		if got := Text([]byte(in)); got != want {
			t.Errorf("Text(%q) = %q, want %q", in, got, want)
		}
	}
}
