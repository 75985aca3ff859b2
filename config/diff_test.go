package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func configOf(t *testing.T, text string) *Config {
	t.Helper()
	c, _, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func servers(t *testing.T, members string) *Config {
	t.Helper()
	return configOf(t, `{"mcpServers":{`+members+`}}`)
}

// Case 92: what a reload has to do with each server. A broken or disabled entry counts as none.
func TestDiffServers(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		want           Plan
	}{
		{"nothing", ``, ``, Plan{}},
		{"same", `"a":{"command":"x"}`, `"a":{"command":"x"}`, Plan{Same: []string{"a"}}},
		{"each", `"a":{"command":"x"},"b":{"command":"x"},"c":{"command":"x"}`, `"d":{"command":"x"},"c":{"command":"x"},"b":{"command":"y"}`,
			Plan{Added: []string{"d"}, Removed: []string{"a"}, Changed: []string{"b"}, Same: []string{"c"}}},
		{"order", `"a":{"command":"x"},"b":{"command":"x"}`, `"b":{"command":"x"},"a":{"command":"x"}`, Plan{Same: []string{"b", "a"}}},
		{"disabled", `"a":{"command":"x"}`, `"a":{"command":"x","disabled":true}`, Plan{Removed: []string{"a"}}},
		{"enabled", `"a":{"command":"x","disabled":true}`, `"a":{"command":"x"}`, Plan{Added: []string{"a"}}},
		{"breaks", `"a":{"command":"x"}`, `"a":{"command":"${NOPE}"}`, Plan{Removed: []string{"a"}}},
		{"mended", `"a":{"command":"${NOPE}"}`, `"a":{"command":"x"}`, Plan{Added: []string{"a"}}},
		{"broken before and after", `"a":{}`, `"a":{"command":"x","args":5}`, Plan{}},
		{"other case", `"Files":{"command":"x"}`, `"files":{"command":"x"}`, Plan{Added: []string{"files"}, Removed: []string{"Files"}}},
		{"name taken twice", `"a":{"command":"x"}`, `"a":{"command":"x"},"A":{"command":"y"}`, Plan{Same: []string{"a"}}},
		{"written differently", `"a":{"command":"x","args":["${TOKEN}"],"timeout":"60s"}`, `"a":{"timeout":"1m","type":"stdio","args":["s3cret"],"env":{},"mirror":{"t":{}},"command":"x"}`, Plan{Same: []string{"a"}}},
		{"order of arguments", `"a":{"command":"x","args":["1","2"]}`, `"a":{"command":"x","args":["2","1"]}`, Plan{Changed: []string{"a"}}},
		{"lazy said", `"a":{"command":"x"}`, `"a":{"command":"x","lazy":false}`, Plan{Changed: []string{"a"}}},
		{"lazy the same", `"a":{"command":"x","lazy":true}`, `"a":{"command":"x","lazy":true}`, Plan{Same: []string{"a"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Diff(servers(t, c.old), servers(t, c.new))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What a variable holds counts, not its name.
func TestDiffSeesExpandedValues(t *testing.T) {
	text := []byte(`{"mcpServers":{"a":{"command":"x","env":{"K":"${K}"}}}}`)
	with := func(value string) *Config {
		c, _, err := Parse("c.json", text, func(string) (string, bool) { return value, true })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if p := Diff(with("1"), with("2")); !slices.Equal(p.Changed, []string{"a"}) {
		t.Errorf("%+v", p)
	}
	if p := Diff(with("1"), with("1")); !slices.Equal(p.Same, []string{"a"}) {
		t.Errorf("%+v", p)
	}
}

// alter changes a value to something else of its type.
func alter(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		alter(p.Elem())
		v.Set(p)
	case reflect.Slice:
		more := reflect.New(v.Type().Elem()).Elem()
		alter(more)
		v.Set(reflect.Append(reflect.AppendSlice(reflect.Zero(v.Type()), v), more))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		alter(key)
		alter(value)
		m := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			m.SetMapIndex(k, v.MapIndex(k))
		}
		m.SetMapIndex(key, value)
		v.Set(m)
	default:
		panic(fmt.Sprintf("cannot alter a %v; teach the test", v.Type()))
	}
}

// leaves calls visit for each field that holds no struct, with its path.
func leaves(path string, v reflect.Value, visit func(path string, v reflect.Value)) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		switch name := path + field.Name; {
		case !field.IsExported():
		case field.Type.Kind() == reflect.Struct:
			leaves(name+".", v.Field(i), visit)
		default:
			visit(name, v.Field(i))
		}
	}
}

// Every field of Server matters: whoever adds one cannot forget Diff.
func TestDiffSeesEveryFieldOfServer(t *testing.T) {
	notCompared := []string{"Name", "Disabled", "Problem"} // they say which entry it is and whether it is there
	seen := 0
	leaves("", reflect.ValueOf(Server{}), func(path string, _ reflect.Value) {
		if slices.Contains(notCompared, path) {
			return
		}
		seen++
		old, new := servers(t, `"a":{"command":"x"}`), servers(t, `"a":{"command":"x"}`)
		alter(fieldAt(reflect.ValueOf(&new.Servers[0]).Elem(), path))
		if p := Diff(old, new); !cmp.Equal(p, Plan{Changed: []string{"a"}}) {
			t.Errorf("%s differs: %+v", path, p)
		}
	})
	if seen < 20 {
		t.Errorf("only %d fields were looked at", seen)
	}
	broken := servers(t, `"a":{"command":"x"}`)
	broken.Servers[0].Problem = errors.New("x")
	if p := Diff(servers(t, `"a":{"command":"x"}`), broken); !cmp.Equal(p, Plan{Removed: []string{"a"}}) {
		t.Errorf("%+v", p)
	}
}

// Every field of Config but the servers is in the plan, once, under the name it has in the file.
func TestDiffSeesEveryFieldOfConfig(t *testing.T) {
	fields := rootFields()
	live := 0
	leaves("", reflect.ValueOf(Config{}), func(path string, _ reflect.Value) {
		if path == "Servers" {
			return
		}
		old, new := configOf(t, `{}`), configOf(t, `{}`)
		alter(fieldAt(reflect.ValueOf(new).Elem(), path))
		p := Diff(old, new)
		names := append(slices.Clone(p.Root), p.Restart...)
		if len(names) != 1 {
			t.Errorf("%s differs: %+v", path, p)
			return
		}
		live += len(p.Root)
		fields = slices.DeleteFunc(fields, func(f rootField) bool { return f.name == names[0] })
		if _, ok := pathsOfFile()[names[0]]; !ok {
			t.Errorf("%s is called %q, which is no key of the file", path, names[0])
		}
	})
	if len(fields) > 0 || live == 0 {
		t.Errorf("left over: %v", fields)
	}
}

// pathsOfFile are all keys outside the servers, with the object they are in.
func pathsOfFile() map[string]bool {
	paths := map[string]bool{}
	for _, name := range (&file{}).rootKeys(newConfig()).names() {
		paths[name] = true
	}
	for object, keys := range map[string]settings{"limits": limitKeys(&Limits{}), "log": logKeys(&Log{})} {
		for _, name := range keys.names() {
			paths[object+"."+name] = true
		}
	}
	return paths
}

func fieldAt(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// Which settings need a restart.
func TestDiffRoot(t *testing.T) {
	for text, want := range map[string]Plan{
		`{}`: {},
		`{"listen": "127.0.0.1:8420", "log": {"level": "info"}, "allowedHosts": []}`: {},
		`{"listen": "127.0.0.1:1"}`:                             {Restart: []string{"listen"}},
		`{"keys": ["${KEY}"], "log": {"file": "x", "keep": 1}}`: {Restart: []string{"keys", "log.file", "log.keep"}},
		`{"allowedHosts": ["h"], "allowedOrigins": ["null"], "log": {"level": "debug", "maxMB": 1}, "limits": {"sessions": 1, "queueWait": "1s"}}`: {
			Root: []string{"allowedHosts", "allowedOrigins", "limits.sessions", "limits.queueWait", "log.level"}, Restart: []string{"log.maxMB"}},
	} {
		if diff := cmp.Diff(want, Diff(configOf(t, `{}`), configOf(t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// For any two configurations: each name that is there is in one list; a plan to the same is empty; and the way back is the
// mirror image.
func TestDiffProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) *Config {
			c := newConfig()
			for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), func(s string) string { return s }).Draw(t, label) {
				s := newServer(name)
				s.Command = rapid.SampledFrom([]string{"x", "y"}).Draw(t, "command")
				s.Disabled = rapid.Bool().Draw(t, "disabled")
				if rapid.IntRange(0, 4).Draw(t, "broken") == 0 {
					s.Problem = errors.New("x")
				}
				c.Servers = append(c.Servers, s)
			}
			return c
		}
		old, new := draw("old"), draw("new")
		there, back, self := Diff(old, new), Diff(new, old), Diff(new, new)
		after := slices.Sorted(maps.Keys(usable(new)))
		if got := slices.Sorted(slices.Values(slices.Concat(there.Added, there.Changed, there.Same))); !slices.Equal(got, after) {
			t.Fatalf("%v for %v", got, after)
		}
		before := slices.Sorted(maps.Keys(usable(old)))
		if got := slices.Sorted(slices.Values(slices.Concat(there.Removed, there.Changed, there.Same))); !slices.Equal(got, before) {
			t.Fatalf("%v for %v", got, before)
		}
		if len(self.Added)+len(self.Removed)+len(self.Changed)+len(self.Root)+len(self.Restart) > 0 {
			t.Fatalf("to itself: %+v", self)
		}
		for _, pair := range [][2][]string{{there.Added, back.Removed}, {there.Removed, back.Added}, {there.Changed, back.Changed}, {there.Same, back.Same}} {
			if !slices.Equal(slices.Sorted(slices.Values(pair[0])), slices.Sorted(slices.Values(pair[1]))) {
				t.Fatalf("there %+v, back %+v", there, back)
			}
		}
	})
}
