package mirror

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/textproto"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
	"mcpbridge/test/vectors"
)

func unmarshal[T any](t *testing.T, raw []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("cannot read vector: %v", err)
	}
	return v
}

func typeNamed(t *testing.T, word string) Type {
	t.Helper()
	typ := typeOf(word)
	if typ == 0 {
		t.Fatalf("unknown type %q", word)
	}
	return typ
}

// ENC-01..03, 05, 09..11, 13: every header-encode vector. The name vectors go through Encode as well.
func TestVectorsHeaderEncode(t *testing.T) {
	for _, v := range vectors.Group(t, "header-encode") {
		t.Run(v.ID, func(t *testing.T) {
			in := unmarshal[struct {
				Field, Type, ValueJSON string
				Value                  json.RawMessage
				Absent                 bool
			}](t, v.Input)
			want := unmarshal[struct {
				Header              *string
				Omit, Refuse        bool
				ReceiverAlsoAccepts []string
			}](t, v.Expect)
			raw := []byte(in.Value)
			if in.ValueJSON != "" {
				raw = []byte(in.ValueJSON)
			}
			if in.Absent {
				raw = nil
			} else if len(raw) == 0 {
				t.Fatal("the vector has no value")
			}
			header, skip, err := EncodeValue(raw, typeNamed(t, in.Type))
			switch {
			case want.Refuse:
				if !errors.Is(err, ErrUnsafe) {
					t.Fatalf("EncodeValue = %q, %v, %v; want ErrUnsafe", header, skip, err)
				}
				return
			case err != nil:
				t.Fatalf("EncodeValue: %v", err)
			case want.Omit:
				if !skip || header != "" {
					t.Fatalf("EncodeValue = %q, skip %v; want no header", header, skip)
				}
				return
			case want.Header == nil:
				t.Fatal("the vector expects nothing this test knows")
			case skip || header != *want.Header:
				t.Fatalf("EncodeValue = %q, skip %v; want %q", header, skip, *want.Header)
			}
			for _, also := range append(want.ReceiverAlsoAccepts, header) {
				if err := checkParam("H", raw, []string{also}); err != nil {
					t.Errorf("receiver refuses %q: %v", also, err)
				}
			}
			if text, ok := framing.String(raw); ok && in.Field == mcp.HeaderName {
				if got := Encode(text); got != *want.Header {
					t.Errorf("Encode = %q, want %q", got, *want.Header)
				}
				if err := CheckName([]string{header}, text); err != nil {
					t.Errorf("CheckName: %v", err)
				}
			}
		})
	}
}

// ENC-04, 06..11, HTTP-M-31, HTTP-M-33: every header-decode vector.
func TestVectorsHeaderDecode(t *testing.T) {
	classes := map[string]error{"base64": ErrBase64, "utf8": ErrUTF8, "characters": ErrCharacters}
	for _, v := range vectors.Group(t, "header-decode") {
		t.Run(v.ID, func(t *testing.T) {
			in := unmarshal[struct{ Header, HeaderHex string }](t, v.Input)
			want := unmarshal[struct {
				Value  *string
				Reject string
				Code   int
			}](t, v.Expect)
			header := in.Header
			if in.HeaderHex != "" {
				header = unhexed(t, in.HeaderHex)
			}
			got, err := Decode(header)
			if want.Reject != "" {
				if class := classes[want.Reject]; class == nil || !errors.Is(err, class) || got != "" {
					t.Fatalf("Decode = %q, %v; want class %s", got, err, want.Reject)
				}
				var m *Mismatch
				if err := CheckName([]string{header}, "x"); !errors.As(err, &m) || want.Code != mcp.CodeHeaderMismatch {
					t.Fatalf("CheckName = %v, want *Mismatch", err)
				}
				return
			}
			if want.Value == nil || err != nil || got != *want.Value {
				t.Fatalf("Decode = %q, %v; want %v", got, err, want.Value)
			}
		})
	}
}

// XMH-02..10, XMH-20: every schema vector, once as it is and once with its keys spelt in escapes.
func TestVectorsSchema(t *testing.T) {
	for _, v := range vectors.Group(t, "schema") {
		t.Run(v.ID, func(t *testing.T) {
			in := unmarshal[struct{ InputSchema json.RawMessage }](t, v.Input)
			want := unmarshal[schemaVerdict](t, v.Expect)
			escaped := strings.ReplaceAll(string(in.InputSchema), `"x-mcp-header":`, `"\u0078-mcp\u002Dheader":`)
			escaped = strings.ReplaceAll(escaped, `"properties":`, `"propertie\u0073":`)
			for _, schema := range []string{string(in.InputSchema), escaped} {
				params, err := Parse([]byte(schema))
				if diff := cmp.Diff(want, verdict(params, err)); diff != "" {
					t.Errorf("Parse(%s) (-want +got):\n%s", schema, diff)
				}
			}
		})
	}
}

type schemaHeader struct {
	Name string   `json:"name"`
	Path []string `json:"path"`
	Type string   `json:"type"`
}

type schemaVerdict struct {
	Valid   bool           `json:"valid"`
	Headers []schemaHeader `json:"headers"`
	Reason  string         `json:"reason"`
}

func verdict(params []Param, err error) schemaVerdict {
	var bad *Invalid
	if errors.As(err, &bad) {
		return schemaVerdict{Reason: bad.Class}
	}
	out := schemaVerdict{Valid: err == nil, Headers: []schemaHeader{}}
	for _, p := range params {
		out.Headers = append(out.Headers, schemaHeader{p.Header, p.Path, p.Type.String()})
	}
	return out
}

// fixtureCatalog reads the fixture's tools as a server would list them.
func fixtureCatalog(t *testing.T) *Catalog {
	t.Helper()
	f := unmarshal[struct {
		HTTP struct{ Tools json.RawMessage }
	}](t, vectors.Fixtures(t))
	c := new(Catalog)
	if p := c.Add(page(t, string(f.HTTP.Tools))); len(p) != 0 {
		t.Fatalf("the fixture's tools have problems: %v", p)
	}
	return c
}

// page is a tools/list response with these tools.
func page(t testing.TB, tools string) *framing.Message {
	t.Helper()
	m, err := framing.Scan([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":` + tools + `}}`))
	if err != nil {
		t.Fatalf("cannot scan page: %v", err)
	}
	return m
}

// httpVector is what the header checks need of an http-request vector.
type httpVector struct {
	headers map[string][]string // by canonical name
	message *framing.Message
}

func httpRequest(t *testing.T, v vectors.Vector) httpVector {
	t.Helper()
	r := unmarshal[struct {
		Headers, HeadersHex [][2]string
		Body                json.RawMessage
		BodyText            string
	}](t, v.Request)
	out := httpVector{headers: make(map[string][]string)}
	add := func(name, value string) {
		key := textproto.CanonicalMIMEHeaderKey(name)
		out.headers[key] = append(out.headers[key], value)
	}
	for _, h := range r.Headers {
		add(h[0], h[1])
	}
	for _, h := range r.HeadersHex {
		add(h[0], unhexed(t, h[1]))
	}
	body := []byte(r.BodyText)
	if len(r.Body) > 0 {
		body = r.Body
	}
	m, err := framing.Scan(body)
	if err != nil {
		t.Fatalf("cannot scan body: %v", err)
	}
	out.message = m
	return out
}

func unhexed(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// check runs the header checks of HTTP-M-41 steps 9 and 12.
func (h httpVector) check(c *Catalog) error {
	m := h.message
	if err := CheckPlain(h.headers[mcp.HeaderMethod], mcp.HeaderMethod, m.MethodName()); err != nil {
		return err
	}
	member := mcp.TraitsOf(m.MethodName()).NameParam
	if member == "" {
		return nil
	}
	text, _ := framing.String(m.Bytes(m.Param(member)))
	if err := CheckName(h.headers[mcp.HeaderName], text); err != nil {
		return err
	}
	params, _ := c.Tool(text)
	return Check(params, m.Bytes(m.Param("arguments")), func(name string) []string {
		return h.headers[textproto.CanonicalMIMEHeaderKey(mcp.HeaderParamPrefix+name)]
	})
}

// HTTP-M-25..34, XMH-14..17, ENC-12: the http-request vectors about method, name and parameter headers.
func TestVectorsHeaders(t *testing.T) {
	c := fixtureCatalog(t)
	tried := 0
	for _, v := range vectors.Group(t, "http-request") {
		if !strings.HasPrefix(v.ID, "hv-param-") && !strings.HasPrefix(v.ID, "hv-name-") && !strings.HasPrefix(v.ID, "hv-method-") {
			continue
		}
		tried++
		t.Run(v.ID, func(t *testing.T) {
			want := unmarshal[struct {
				Outcome string
				Status  int
			}](t, v.Expect)
			err := httpRequest(t, v).check(c)
			var m *Mismatch
			switch want.Outcome {
			case "dispatch":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			case "reject":
				if !errors.As(err, &m) || m.Header == "" || m.Reason == "" {
					t.Errorf("check = %v, want *Mismatch", err)
				}
			default:
				t.Fatalf("unknown outcome %q", want.Outcome)
			}
		})
	}
	if tried < 80 {
		t.Errorf("only %d vectors were tried", tried)
	}
}
