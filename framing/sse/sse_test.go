package sse_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	gosse "github.com/tmaxmax/go-sse"
	"mcpbridge/framing"
	"mcpbridge/framing/sse"
	"mcpbridge/test/vectors"
	"pgregory.net/rapid"
)

// stutter gives a text in reads of n bytes.
type stutter struct {
	text string
	n    int
}

func (s *stutter) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	n := copy(p, s.text[:min(len(s.text), s.n)])
	s.text = s.text[n:]
	return n, nil
}

func decode(text string, read, limit int) (d *sse.Decoder, events []sse.Event, err error) {
	d = sse.NewDecoder(&stutter{text, read}, limit)
	for {
		ev, err := d.Next()
		if err != nil {
			return d, events, err
		}
		events = append(events, ev)
	}
}

func TestVectors(t *testing.T) {
	for _, v := range vectors.Group(t, "sse") {
		var in struct {
			Text   string
			Chunks []string
		}
		var want struct {
			Events      []struct{ Event, Data, ID string }
			LastEventID *string
			RetryMs     *int
		}
		if err := errors.Join(json.Unmarshal(v.Input, &in), json.Unmarshal(v.Expect, &want)); err != nil {
			t.Fatal(err)
		}
		text := in.Text + strings.Join(in.Chunks, "")
		for _, read := range []int{1, 2, 3, 1000} {
			d, events, err := decode(text, read, 1000)
			if err != io.EOF || len(events) != len(want.Events) {
				t.Errorf("%s in reads of %d: %d events, %v", v.ID, read, len(events), err)
				continue
			}
			for i, w := range want.Events {
				if ev := events[i]; ev.Name != w.Event || string(ev.Data) != w.Data || w.ID != "" && ev.ID != w.ID {
					t.Errorf("%s: event %d is %+v %q, want %+v", v.ID, i, ev, ev.Data, w)
				}
			}
			if want.LastEventID != nil && d.LastID() != *want.LastEventID {
				t.Errorf("%s: last id %q", v.ID, d.LastID())
			}
			if retry := d.Retry(); want.RetryMs != nil && retry != *want.RetryMs || want.RetryMs == nil && retry != -1 {
				t.Errorf("%s: retry %d", v.ID, retry)
			}
		}
	}
}

func TestDecoder(t *testing.T) {
	tests := []struct {
		text, want, last string
		retry            int
	}{
		{"", "", "", -1},
		{"data: a\r\rdata: b\n\ndata: c\r\n\r\n", "message=a#|message=b#|message=c#", "", -1},
		{"data: a\r\n\rdata: b\n\r\ndata: c\n\r", "message=a#|message=b#|message=c#", "", -1},
		{"id: 1\nevent: e\nretry: 7\ndata: a\n\ndata: b\n\n", "e=a#1 id retry 7|message=b#1", "1", 7},
		{"id: 1\n\n", "", "1", -1},                                      // an id without data counts
		{"id: 1\ndata: \n\nid\ndata: x\n\n", "message=x# id", "", -1},   // an empty id resets
		{"id: 1\ndata: a\n\nid: 2\ndata: b", "message=a#1 id", "1", -1}, // unfinished: neither event nor id
		{"id: 1\ndata: a\n\nid: 2\ndata: b\n", "message=a#1 id", "1", -1},
		{"event: x\nevent:\ndata: a\n\n", "message=a#", "", -1},
		{"data:\ndata:\n\n", "message=\n#", "", -1},
		{"data: a\ndata\ndata: b\n\n", "message=a\n\nb#", "", -1},
		{"retry: 1\nretry: x\nretry:\nretry: -1\nretry: 1.5\n\n", "", "", 1},
		{"retry: 99999999999999999999\n\n", "", "", 2147483647},
		{" data: a\n\ndata : b\n\n:data: c\n\n", "", "", -1},
		{"data:\ta\n\ndata:  b \n\n", "message=\ta#|message= b #", "", -1},
		{"data: a: b\n\n", "message=a: b#", "", -1},
		{"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", "message=a#", "", -1},
		{"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", "", "", -1},
		{"\xef\xbb", "", "", -1},
		{"data: \xff\n\n", "message=\xff#", "", -1},
	}
	for _, tt := range tests {
		for _, read := range []int{1, 2, 1000} {
			d, events, err := decode(tt.text, read, 1000)
			var list []string
			for _, ev := range events {
				s := fmt.Sprintf("%s=%s#%s", ev.Name, ev.Data, ev.ID)
				if ev.HasID {
					s += " id"
				}
				if ev.Retry >= 0 {
					s += fmt.Sprintf(" retry %d", ev.Retry)
				}
				list = append(list, s)
			}
			if got := strings.Join(list, "|"); got != tt.want || err != io.EOF || d.LastID() != tt.last || d.Retry() != tt.retry {
				t.Errorf("%q in reads of %d: %q, %v, last %q, retry %d", tt.text, read, got, err, d.LastID(), d.Retry())
			}
			if _, err := d.Next(); err != io.EOF {
				t.Errorf("the end is not final: %v", err)
			}
		}
	}
}

// An event that ends with CR is there at once: the reader does not wait for an LF that may never come.
func TestDecoderDoesNotWait(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "data: a\r\r")
		_, _ = io.WriteString(w, "\ndata: b\r\n\r")
		_, _ = io.WriteString(w, "\n")
		_ = w.Close()
	}()
	d := sse.NewDecoder(r, 100)
	for _, want := range []string{"a", "b"} {
		if ev, err := d.Next(); err != nil || string(ev.Data) != want {
			t.Fatalf("%q, %v", ev.Data, err)
		}
	}
	if _, err := d.Next(); err != io.EOF {
		t.Error(err)
	}
}

func TestDecoderLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	const big = 200_000
	tests := []struct {
		name, text string
		limit      int
		ok         bool
	}{
		{"n", "data: " + x(10) + "\n\n", 10, true},
		{"n+1", "data: " + x(11) + "\n\n", 10, false},
		{"n in two lines", "data: " + x(4) + "\ndata: " + x(5) + "\n\n", 10, true},
		{"n+1 in two lines", "data: " + x(5) + "\ndata: " + x(5) + "\n\n", 10, false},
		{"n per event", strings.Repeat("data: "+x(10)+"\n\n", 5), 10, true},
		{"long line n", "data: " + x(big) + "\n\n", big, true},
		{"long line n+1", "data: " + x(big+1) + "\n\n", big, false},
		{"long line without a space", "data:" + x(big) + "\r\n\r\n", big, true},
		{"long comment", ":" + x(big) + "\ndata: a\n\n", 10, true},
		{"long unknown field", x(big) + ": y\ndata: a\n\n", 10, true},
		{"long unknown field with value", "foo: " + x(big) + "\ndata: a\n\n", 10, true},
		{"long id", "id: " + x(big) + "\ndata: a\n\n", 10, false},
		{"long event", "event: " + x(big) + "\ndata: a\n\n", 10, false},
		{"long retry", "retry: " + x(big) + "\ndata: a\n\n", 10, false},
		{"empty data lines n", strings.Repeat("data:\n", 11) + "\n", 10, true},
		{"empty data lines n+1", strings.Repeat("data:\n", 12) + "\n", 10, false},
	}
	for _, tt := range tests {
		for _, read := range []int{7, 1 << 20} {
			d, events, err := decode(tt.text, read, tt.limit)
			var large *sse.EventTooLarge
			if tt.ok && (err != io.EOF || len(events) == 0) || !tt.ok && (!errors.As(err, &large) || len(events) != 0) {
				t.Errorf("%s: %d events, %v", tt.name, len(events), err)
			}
			if !tt.ok {
				if _, again := d.Next(); again != err {
					t.Errorf("%s: the error is not final", tt.name)
				}
			} else if strings.HasPrefix(tt.name, "long line") && string(events[0].Data) != x(tt.limit) {
				t.Errorf("%s: wrong data", tt.name)
			}
		}
	}
	if e := (&sse.EventTooLarge{Limit: 5}).Error(); e != "cannot read event: larger than 5 bytes" {
		t.Error(e)
	}
}

func TestDecoderErrors(t *testing.T) {
	boom := errors.New("boom")
	d := sse.NewDecoder(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(boom)), 10)
	if ev, err := d.Next(); err != nil || string(ev.Data) != "a" {
		t.Fatalf("%v, %v", ev, err)
	}
	if _, err := d.Next(); err != boom {
		t.Error(err)
	}
	if _, err := sse.NewDecoder(idle{}, 10).Next(); err != io.ErrNoProgress {
		t.Error(err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestAppend(t *testing.T) {
	data := framing.Whole([]byte(`{"a":1}`))
	text := func(s string) framing.Frame { return framing.Whole([]byte(s)) }
	tests := []struct{ got, want string }{
		{string(sse.AppendEvent([]byte("x"), "", "", -1, data)), "xdata: {\"a\":1}\n\n"},
		{string(sse.AppendEvent(nil, "7", "message", 0, data)), "id: 7\nretry: 0\ndata: {\"a\":1}\n\n"},
		{string(sse.AppendEvent(nil, "7", "endpoint", 1500, text("/m"))), "id: 7\nevent: endpoint\nretry: 1500\ndata: /m\n\n"},
		{string(sse.AppendEvent(nil, "7", "", -1, framing.Frame{})), "id: 7\ndata: \n\n"}, // HTTP-L-07
		{string(sse.AppendEvent(nil, "", "", -1, text("a\nb\r\nc\rd\n"))), "data: a\ndata: b\ndata: c\ndata: d\ndata: \n\n"},
		{string(sse.AppendEvent(nil, "1\ndata: evil\n\n", "e\rdata: x\x00", -1, data)), "id: 1 data: evil  \nevent: e data: x \ndata: {\"a\":1}\n\n"},
		{string(sse.Head(nil, "7", "e", 5)) + "x" + sse.Tail, "id: 7\nevent: e\nretry: 5\ndata: x\n\n"},
		{string(sse.AppendComment([]byte("x"), "keep-alive")), "x: keep-alive\n\n"},
		{string(sse.AppendComment(nil, "a\nb\rc")), ": a b c\n\n"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

// What is appended is what is decoded, in any chunking.
func TestRoundTrip(t *testing.T) {
	field := rapid.StringMatching(`[a-zA-Z0-9 :é_-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		var wire []byte
		var want []string
		last := ""
		for range rapid.IntRange(0, 6).Draw(t, "events") {
			id, name, retry := field.Draw(t, "id"), field.Draw(t, "name"), rapid.IntRange(-1, 100_000).Draw(t, "retry")
			data := rapid.OneOf(rapid.StringMatching(`[ -~\r\n]{0,20}`), rapid.Custom(func(t *rapid.T) string {
				return strings.Repeat("0123456789", rapid.IntRange(0, 20_000).Draw(t, "tens"))
			})).Draw(t, "data")
			f := framing.Whole([]byte(data))
			if len(data) > 70_000 {
				f = framing.Rewrite([]byte(data), []framing.Edit{{At: framing.Span{Start: 40_000, End: 40_001}, New: []byte("x")}})
				data = string(f.Bytes())
			}
			wire = sse.AppendComment(sse.AppendEvent(wire, id, name, retry, f), "keep-alive")
			if id != "" {
				last = id
			}
			if name == "" {
				name = "message"
			}
			if data = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(data); data != "" {
				want = append(want, fmt.Sprintf("%q %q %v %d %s", last, name, id != "", retry, data))
			}
		}
		_, events, err := decode(string(wire), rapid.OneOf(rapid.IntRange(1, 10), rapid.IntRange(1000, 100_000)).Draw(t, "read"), 1<<20)
		if err != io.EOF || len(events) != len(want) {
			t.Fatalf("%d events, want %d, %v", len(events), len(want), err)
		}
		for i, ev := range events {
			if got := fmt.Sprintf("%q %q %v %d %s", ev.ID, ev.Name, ev.HasID, ev.Retry, ev.Data); got != want[i] {
				t.Fatalf("event %d: %.200s, want %.200s", i, got, want[i])
			}
		}
	})
}

// FuzzSSE compares with another implementation, which also returns events without data.
func FuzzSSE(f *testing.F) {
	f.Add("id: 1\nevent: e\ndata: a\rdata: b\r\n\r\n: c\n\nretry: 5\ndata\n\n", 3)
	f.Add("\xef\xbb\xbfdata: x\n\ndata:y\r\rid\n\nfoo\n", 1)
	f.Fuzz(func(t *testing.T, text string, read int) {
		_, events, err := decode(text, 1+read&63, 1<<20)
		if err != io.EOF {
			t.Fatal(err)
		}
		var want []gosse.Event
		for ev, err := range gosse.Read(strings.NewReader(text), &gosse.ReadConfig{MaxEventSize: 1 << 20}) {
			if err != nil {
				return
			}
			if ev.Data != "" {
				want = append(want, ev)
			}
		}
		if len(events) != len(want) {
			t.Fatalf("%q: %d events, want %d: %+v", text, len(events), len(want), want)
		}
		for i, w := range want {
			if w.Type == "" {
				w.Type = "message"
			}
			if ev := events[i]; string(ev.Data) != w.Data || ev.ID != w.LastEventID || ev.Name != w.Type {
				t.Fatalf("%q: event %d is %q %q %q, want %q %q %q", text, i, ev.ID, ev.Name, ev.Data, w.LastEventID, w.Type, w.Data)
			}
		}
	})
}

func benchDecode(b *testing.B, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		d := sse.NewDecoder(strings.NewReader(text), 64<<20)
		for {
			if _, err := d.Next(); err != nil {
				break
			}
		}
	}
}

func BenchmarkDecodeSmall(b *testing.B) {
	benchDecode(b, strings.Repeat("id: 12\ndata: "+strings.Repeat("x", 100)+"\n\n", 10_000))
}
func BenchmarkDecodeCR(b *testing.B)  { benchDecode(b, strings.Repeat("data: x\r\r", 100_000)) }
func BenchmarkDecode1M(b *testing.B)  { benchDecode(b, "data: "+strings.Repeat("x", 1<<20)+"\n\n") }
func BenchmarkDecode16M(b *testing.B) { benchDecode(b, "data: "+strings.Repeat("x", 16<<20)+"\n\n") }

func BenchmarkAppendEvent(b *testing.B) {
	f := framing.Whole(bytes.Repeat([]byte("x"), 160))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = sse.AppendEvent(dst[:0], "12", "", -1, f)
	}
}
