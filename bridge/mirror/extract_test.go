package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// XMH-14, FRM-34.
func TestExtract(t *testing.T) {
	tests := []struct {
		args  string
		path  []string
		want  string // "" is absent
		twice bool
	}{
		{args: ``, path: []string{"a"}},
		{args: `null`, path: []string{"a"}},
		{args: `["a",1]`, path: []string{"a"}},
		{args: `{}`, path: []string{"a"}},
		{args: `{}`, path: nil},
		{args: `{"a":1}`, path: []string{"b"}},
		{args: `{"A":1}`, path: []string{"a"}},
		{args: `{"a":null}`, path: []string{"a"}, want: `null`},
		{args: ` { "x" : [ { "a" : 2 } ] , "a" : "v" } `, path: []string{"a"}, want: `"v"`},
		{args: `{"a":1.10}`, path: []string{"a"}, want: `1.10`},
		{args: `{"a":{"b":[1, 2]}}`, path: []string{"a", "b"}, want: `[1, 2]`},
		{args: `{"a":{"b":1}}`, path: []string{"a"}, want: `{"b":1}`},
		{args: `{"a":[{"b":1}]}`, path: []string{"a", "b"}},
		{args: `{"a":"b"}`, path: []string{"a", "b"}},
		{args: `{"a.b":1}`, path: []string{"a", "b"}},
		{args: `{"a.b":1}`, path: []string{"a.b"}, want: `1`},
		{args: `{"\u0061":"\"}"}`, path: []string{"a"}, want: `"\"}"`},
		{args: `{"a\"":1}`, path: []string{`a"`}, want: `1`},
		{args: `{"":{"":7}}`, path: []string{"", ""}, want: `7`},
		{args: `{"a":1,"a":1}`, path: []string{"a"}, twice: true},
		{args: `{"a":1,"\u0061":2}`, path: []string{"a"}, twice: true},
		{args: `{"a":{"b":1},"a":null}`, path: []string{"a", "b"}, twice: true},
		{args: `{"a":{"b":1,"b":2}}`, path: []string{"a", "b"}, twice: true},
		{args: `{"a":{"c":1,"c":2,"b":3},"d":1,"d":1}`, path: []string{"a", "b"}, want: `3`},
	}
	for _, tt := range tests {
		got, err := Extract([]byte(tt.args), tt.path)
		if string(got) != tt.want || errors.Is(err, ErrTwice) != tt.twice || (err != nil) != tt.twice {
			t.Errorf("Extract(%s, %q) = %s, %v; want %s, twice %v", tt.args, tt.path, got, err, tt.want, tt.twice)
		}
	}
}

// Each agrees with Extract, whatever the order and overlap of the paths.
func TestEach(t *testing.T) {
	args := []byte(`{"z":1,"o":{"p":{"q":2,"s":3},"r":true},"b":"x","c":[1]}`)
	params := []Param{
		{Path: []string{"o", "r"}}, {Path: []string{"z"}}, {Path: []string{"o", "p", "q"}}, {Path: []string{"b"}},
		{Path: []string{"o"}}, {Path: []string{"none"}}, {Path: []string{"o", "p", "none"}}, {Path: []string{"c", "d"}},
		{Path: []string{"o", "p", "s"}}, {Path: []string{"o", "p"}}, {Path: []string{"z"}},
	}
	i := 0
	err := Each(params, args, func(p *Param, value []byte) error {
		if p != &params[i] {
			t.Fatalf("visit %d is not for param %d", i, i)
		}
		want, err := Extract(args, p.Path)
		if err != nil || string(value) != string(want) {
			t.Errorf("value of %q = %s, want %s, %v", p.Path, value, want, err)
		}
		i++
		return nil
	})
	if err != nil || i != len(params) {
		t.Fatalf("Each = %v after %d visits", err, i)
	}
	stop := errors.New("stop")
	if err := Each(params, args, func(*Param, []byte) error { return stop }); err != stop {
		t.Errorf("Each = %v, want the visit's error", err)
	}
}

// ENC-13 and XMH-14 with very many params and members: one pass, so this ends at once.
func TestEachManyByMany(t *testing.T) {
	const n = MaxSchemas - 1
	params := make([]Param, n)
	var b strings.Builder
	b.WriteByte('{')
	for i := range n {
		params[i].Path = []string{fmt.Sprintf("p%d", i)}
		fmt.Fprintf(&b, `"q%d":%d,"p%d":%d,`, i, i, i, i)
	}
	args := []byte(b.String() + `"end":1}`)
	i := 0
	err := Each(params, args, func(_ *Param, value []byte) error {
		if string(value) != fmt.Sprint(i) {
			t.Fatalf("value %d = %s", i, value)
		}
		i++
		return nil
	})
	if err != nil || i != n {
		t.Errorf("Each = %v after %d visits", err, i)
	}
}
