package framing_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mcpbridge/framing"
)

func top(m *framing.Message, name string) framing.Span {
	v, _ := framing.Lookup(m.Raw, m.TopMembers(), name)
	return v
}

func TestMessageMembers(t *testing.T) {
	m := mustScan(t, `{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"n\u0061me":"t","arguments":{"name":5},"_meta":{"a/b":1,"":2}},"extra":[1]}`)
	checks := map[string][2]string{
		"Param name":    {string(m.Bytes(m.Param("name"))), `"t"`},
		"Param Name":    {string(m.Bytes(m.Param("Name"))), ``},
		"Param a/b":     {string(m.Bytes(m.Param("a/b"))), ``},
		"Meta a/b":      {string(m.Bytes(m.MetaMember("a/b"))), `1`},
		"Meta empty":    {string(m.Bytes(m.MetaMember(""))), `2`},
		"Result member": {string(m.Bytes(m.ResultMember("name"))), ``},
		"method":        {m.MethodName(), "tools/call"},
		"counts":        {fmt.Sprint(len(m.TopMembers()), len(m.ParamMembers()), len(m.MetaMembers()), m.ResultMembers() == nil), "5 3 2 true"},
	}
	for name, c := range checks {
		if c[0] != c[1] {
			t.Errorf("%s: %q, want %q", name, c[0], c[1])
		}
	}
	if !m.MethodIs("tools/call") || m.MethodIs("tools\\/call") || m.MethodIs("tools/list") || m.MethodIs("") {
		t.Error("MethodIs compares something else than the decoded method")
	}
	r := mustScan(t, `{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1}}}`)
	if r.MethodIs("") || r.MethodName() != "" || r.ParamMembers() != nil || r.Param("a").OK() || string(r.Bytes(r.ResultMember("a"))) != `{"b":1}` || r.MetaMembers() != nil {
		t.Error("accessors of a result")
	}
	n := mustScan(t, `{"jsonrpc":"2.0","method":"m","params":[]}`)
	if n.ParamMembers() != nil {
		t.Error("ParamMembers of an array")
	}
	if e := mustScan(t, `{"jsonrpc":"2.0","method":"m","params":{}}`); e.ParamMembers() == nil || len(e.ParamMembers()) != 0 {
		t.Error("ParamMembers of an empty object must be empty and not nil")
	}
}

// Tables larger than their inline room keep every member, in order.
func TestMessageManyMembers(t *testing.T) {
	for _, n := range []int{0, 1, 5, 6, 7, 8, 9, 24, 25, 100} {
		var list strings.Builder
		for i := range n {
			fmt.Fprintf(&list, `,"k%d":%d`, i, i)
		}
		object := `{"first":0` + list.String() + `}`
		m := mustScan(t, `{"jsonrpc":"2.0","method":"m"`+list.String()+`,"params":{"_meta":`+object+list.String()+`}}`)
		for i := range n {
			name, want := fmt.Sprintf("k%d", i), fmt.Sprint(i)
			for _, s := range []framing.Span{top(m, name), m.Param(name), m.MetaMember(name)} {
				if string(m.Bytes(s)) != want {
					t.Fatalf("%d members: %s is %q", n, name, m.Bytes(s))
				}
			}
		}
		if len(m.TopMembers()) != n+3 || len(m.ParamMembers()) != n+1 || len(m.MetaMembers()) != n+1 {
			t.Fatalf("%d members: tables of %d, %d, %d", n, len(m.TopMembers()), len(m.ParamMembers()), len(m.MetaMembers()))
		}
	}
}

// The scan is linear on inputs that tempt it not to be: doubling the size must not quadruple the time.
func TestScanIsLinear(t *testing.T) {
	const mib = 1 << 20
	escapedKey := func(i int) string { return fmt.Sprintf(`"\u0061%d":0`, i) }
	plainKey := func(i int) string { return fmt.Sprintf(`"a%d":0`, i) }
	object := func(size int, key func(int) string) string {
		var b strings.Builder
		b.WriteString(`{"_":0`)
		for i := 0; b.Len() < size; i++ {
			b.WriteString("," + key(i))
		}
		return b.String() + "}"
	}
	longKeys := func(size int) string {
		var b strings.Builder
		b.WriteString(`{"_":0`)
		for i := range 31 {
			fmt.Fprintf(&b, `,"\u0061%s%02d":0`, strings.Repeat("k", size/32), i)
		}
		return b.String() + "}"
	}
	for name, value := range map[string]string{
		"many members":         object(mib, plainKey),
		"many escaped members": object(mib, escapedKey),
		"few long names":       longKeys(mib),
		"escapes":              `{"x":"` + strings.Repeat(`\\`, mib/2) + `"}`,
		"quotes":               `{"x":"` + strings.Repeat(`\"`, mib/2) + `"}`,
		"arrays":               `{"x":[` + strings.Repeat("[],", mib/3) + `0]}`,
		"deep":                 `{"x":[` + strings.Repeat(strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+",", 50) + `0]}`,
	} {
		start := time.Now()
		mustScan(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":`+value+`}`)
		// A quadratic step over 10^5 members or 10^6 bytes takes far more than this, also under the race detector.
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: %v for 1 MiB", name, d)
		}
	}
}

func TestScanAllocations(t *testing.T) {
	raw := []byte(smallRequest)
	if n := testing.AllocsPerRun(100, func() { sink, _ = framing.Scan(raw) }); n > 1 {
		t.Errorf("%v allocations for a small request", n)
	}
	m, _ := framing.Scan(raw)
	if n := testing.AllocsPerRun(100, func() {
		if !m.MethodIs("tools/call") || !m.Param("name").OK() || m.MetaMember("none").OK() {
			t.Error("accessor")
		}
	}); n != 0 {
		t.Errorf("%v allocations for look-ups", n)
	}
}

// A 160-byte request as hosts send it.
const smallRequest = `{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"/home/user/projects/notes.md"},"_meta":{"progressToken":12}}}`

var sink *framing.Message
