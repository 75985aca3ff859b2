package framing_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"mcpbridge/framing"
	"mcpbridge/test/vectors"
)

// vectorInput is what the framing vectors feed to a face.
type vectorInput struct {
	Text   string
	Hex    string
	Chunks []string

	ChildWrites          string
	ChildWritesHexChunks []string
}

func (in vectorInput) bytes(t *testing.T) []byte {
	t.Helper()
	// $id stands for the id of the request towards the child.
	text := strings.ReplaceAll(in.Text+strings.Join(in.Chunks, "")+in.ChildWrites, "$id", "41")
	raw, err := hex.DecodeString(in.Hex + strings.ReplaceAll(strings.Join(in.ChildWritesHexChunks, ""), "$id", "3431"))
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(text), raw...)
}

// refusal is what this package alone decides about a line: a code, or 0 for a message.
type refusal struct {
	code int
	id   string
}

// What each framing vector means for the lines of its input. Vectors that are not listed hold well-formed messages only, and what
// happens to those is decided elsewhere.
var vectorLines = map[string][]refusal{
	"frm-pretty":                      {{code: -32700}, {code: -32700}, {code: -32700}},
	"frm-invalid-utf8":                {{code: -32700}, {}},
	"frm-escape-surrogate":            {{code: -32700}},
	"frm-parse-error":                 {{code: -32700}},
	"frm-scalar":                      {{code: -32600}},
	"frm-jsonrpc-wrong":               {{code: -32600, id: "3"}},
	"frm-id-null":                     {{code: -32600}},
	"frm-id-fraction":                 {{code: -32600}},
	"frm-dup-member":                  {{code: -32600, id: "1"}},
	"frm-child-banner":                {{code: -32700}, {}},
	"frm-child-json-junk":             {{code: -32600}, {code: -32600}, {code: -32600}, {}},
	"frm-child-both":                  {{code: -32600, id: "41"}},
	"frm-child-neither":               {{code: -32600, id: "41"}},
	"frm-child-error-string-code":     {{code: -32600, id: "41"}},
	"frm-child-batch":                 {{code: -32600}},
	"frm-batch-modern":                {{code: -32600}},
	"frm-batch-03":                    {{code: -32600}},
	"frm-batch-03-notification-mixed": {{code: -32600}},
	"frm-batch-03-only-notifications": {{code: -32600}, {}},
	"frm-batch-03-invalid-member":     {{code: -32600}},
	"frm-batch-03-empty":              {{code: -32600}},
	"frm-batch-03-initialize":         {{code: -32600}},
	"frm-batch-06":                    {{code: -32600}},
	"frm-batch-11":                    {{code: -32600}},
	"frm-batch-24":                    {{code: -32600}},
}

func TestFramingVectors(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range vectors.Group(t, "framing") {
		var in vectorInput
		if err := json.Unmarshal(v.Input, &in); err != nil {
			t.Fatal(err)
		}
		raw := in.bytes(t)
		if len(raw) == 0 { // frm-overlong is TestOverlongVector; the HTTP ones have no lines
			continue
		}
		seen[v.ID] = true
		t.Run(v.ID, func(t *testing.T) { runVector(t, v.ID, raw) })
	}
	for id := range vectorLines {
		if !seen[id] {
			t.Errorf("no vector %s", id)
		}
	}
}

func runVector(t *testing.T, id string, raw []byte) {
	want, listed := vectorLines[id]
	r := framing.NewReader(&chunked{data: raw, sizes: []int{1, 7}, err: io.EOF}, 1<<20)
	n := 0
	for ; ; n++ {
		line, terminated, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if terminated == (id == "frm-no-final-newline") {
			t.Errorf("line %d: terminated %v", n, terminated)
		}
		var expect refusal
		if listed && n < len(want) {
			expect = want[n]
		}
		_, err = framing.Scan(line)
		var e *framing.ScanError
		var got refusal
		if errors.As(err, &e) {
			got = refusal{e.Code, string(e.ID)}
		}
		if got != expect {
			t.Errorf("line %d %q: %+v, want %+v (%v)", n, line, got, expect, err)
		}
		if array := line[0] == '['; e != nil && e.Array != array {
			t.Errorf("line %d: array %v", n, e.Array)
		}
	}
	if listed && n != len(want) {
		t.Errorf("%d lines, want %d", n, len(want))
	}
}

func TestOverlongVector(t *testing.T) {
	const limit = 1000
	line := func(n int) string {
		const head, tail = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"`, `"}}`
		return head + strings.Repeat("f", n-len(head)-len(tail)) + tail + "\n"
	}
	const then = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	list, err := readAll(framing.NewReader(strings.NewReader(line(limit)+line(limit+1)+then+"\n"), limit))
	if err != io.EOF || len(list) != 3 || list[0].long || !list[1].long || list[2].line != then {
		t.Errorf("%+v, %v", list, err)
	}
}

// The body vectors that are decided by the shape of the message alone.
func TestShapeVectors(t *testing.T) {
	want := map[string]refusal{
		"hv-shape-parse-error": {code: -32700}, "hv-shape-empty-body": {code: -32700}, "hv-shape-two-values": {code: -32700}, "hv-shape-invalid-utf8": {code: -32700},
		"hv-shape-array": {code: -32600}, "hv-shape-array-empty": {code: -32600}, "hv-shape-string": {code: -32600}, "hv-shape-number": {code: -32600}, "hv-shape-null": {code: -32600}, "hv-shape-true": {code: -32600},
		"hv-shape-jsonrpc-1": {-32600, "1"}, "hv-shape-no-jsonrpc": {-32600, "1"}, "hv-shape-id-null": {code: -32600}, "hv-shape-id-fraction": {code: -32600}, "hv-shape-id-bool": {code: -32600}, "hv-shape-id-object": {code: -32600},
		"hv-shape-method-number": {-32600, "1"}, "hv-shape-no-method": {-32600, "1"}, "hv-shape-dup-method": {-32600, "1"}, "hv-shape-dup-name": {-32600, "1"},
		// Well-formed messages; some are refused by later stages.
		"hv-shape-id-zero": {}, "hv-shape-id-empty-string": {}, "hv-shape-id-numeric-string": {}, "hv-shape-id-negative": {}, "hv-shape-response": {}, "hv-shape-params-array": {}, "hv-shape-dup-case": {}, "hv-shape-pretty": {},
	}
	count := 0
	for _, v := range vectors.Group(t, "http-request") {
		if !strings.HasPrefix(v.ID, "hv-shape-") {
			continue
		}
		var entry struct {
			Request struct {
				Body     json.RawMessage
				BodyText *string
				BodyHex  string
			}
		}
		if err := json.Unmarshal(v.Raw, &entry); err != nil {
			t.Fatal(err)
		}
		body := []byte(entry.Request.Body)
		if entry.Request.BodyText != nil {
			body = []byte(*entry.Request.BodyText)
		} else if entry.Request.BodyHex != "" {
			body, _ = hex.DecodeString(entry.Request.BodyHex)
		}
		expect, known := want[v.ID]
		if !known {
			t.Errorf("%s is new: say what it means here", v.ID)
		}
		count++
		var got refusal
		var e *framing.ScanError
		if _, err := framing.Scan(body); errors.As(err, &e) {
			got = refusal{e.Code, string(e.ID)}
		}
		if got != expect {
			t.Errorf("%s: %+v, want %+v", v.ID, got, expect)
		}
	}
	if count != len(want) {
		t.Errorf("%d vectors, want %d", count, len(want))
	}
}
