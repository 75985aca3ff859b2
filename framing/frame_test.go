package framing_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"mcpbridge/framing"
)

func at(start, end uint32, s string) framing.Edit {
	return framing.Edit{At: framing.Span{Start: start, End: end}, New: []byte(s)}
}

func TestRewrite(t *testing.T) {
	const raw = `{"abcdef":1}`
	tests := []struct {
		edits []framing.Edit
		want  string
	}{
		{nil, raw},
		{[]framing.Edit{at(2, 4, "X")}, `{"Xcdef":1}`},
		{[]framing.Edit{at(6, 8, "Y"), at(2, 4, "X")}, `{"XcdY":1}`},
		{[]framing.Edit{at(4, 6, ""), at(2, 4, "X"), at(6, 8, "Y")}, `{"XY":1}`},
		{[]framing.Edit{at(2, 2, "1"), at(2, 2, "2"), at(2, 2, "3")}, `{"123abcdef":1}`},
		{[]framing.Edit{at(2, 4, "X"), at(2, 2, "i"), at(4, 4, "j")}, `{"iXjcdef":1}`},
		{[]framing.Edit{at(0, 12, "[]")}, `[]`},
		{[]framing.Edit{at(12, 12, "\n")}, raw + "\n"},
	}
	for _, tt := range tests {
		given := append([]framing.Edit(nil), tt.edits...)
		if got := string(framing.Rewrite([]byte(raw), tt.edits).Bytes()); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.edits, got, tt.want)
		}
		for i := range given {
			if given[i].At != tt.edits[i].At {
				t.Errorf("the caller's edits were reordered")
			}
		}
	}
}

func TestRewritePanics(t *testing.T) {
	for name, edits := range map[string][]framing.Edit{
		"overlap": {at(1, 4, ""), at(3, 5, "")}, "equal": {at(1, 4, "a"), at(1, 4, "b")}, "inside": {at(1, 9, ""), at(3, 3, "x")},
		"outside": {at(1, 13, "")}, "beyond": {at(13, 13, "")}, "backwards": {at(4, 2, "")},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			framing.Rewrite([]byte(`{"abcdef":1}`), edits)
		}()
	}
}

// Up to 64 KiB a rewritten frame is independent of raw; above, it refers to it and copies only small pieces.
func TestRewriteMemory(t *testing.T) {
	const limit = 64 << 10
	for _, size := range []int{limit, limit + 1} {
		raw := []byte(`{"` + strings.Repeat("x", size-6) + `":1}`)
		edits := []framing.Edit{at(2, 3, "y"), at(uint32(len(raw)-2), uint32(len(raw)-1), "2")}
		f := framing.Rewrite(raw, edits)
		want := bytes.Replace(bytes.Replace(raw, []byte("x"), []byte("y"), 1), []byte("1}"), []byte("2}"), 1)
		if f.Len() != len(want) || !bytes.Equal(f.Bytes(), want) {
			t.Fatalf("%d: wrong bytes", size)
		}
		refers := false
		for _, p := range f.Parts() {
			if len(p) == 0 {
				t.Errorf("%d: empty part", size)
			}
			refers = refers || len(p) > 1000 && &p[0] == &raw[3]
		}
		if refers != (size > limit) {
			t.Errorf("size %d: refers to raw: %v", size, refers)
		}
	}
	raw := bytes.Repeat([]byte("0123456789"), 100_000)
	n := testing.AllocsPerRun(10, func() {
		frame = framing.Rewrite(raw, []framing.Edit{{At: framing.Span{Start: 5, End: 7}, New: []byte("x")}})
	})
	if n > 8 || frame.Len() != len(raw)-1 {
		t.Errorf("%v allocations for a large rewrite", n)
	}
	// Many small edits of a large message make few parts.
	var edits []framing.Edit
	for i := range uint32(10_000) {
		edits = append(edits, framing.Edit{At: framing.Span{Start: i * 100, End: i*100 + 1}, New: []byte("ab")})
	}
	if f := framing.Rewrite(raw, edits); len(f.Parts()) > 300 || f.Len() != len(raw)+10_000 {
		t.Errorf("%d parts for 10,000 small edits", len(f.Parts()))
	}
}

func TestFrame(t *testing.T) {
	var zero framing.Frame
	if zero.Len() != 0 || len(zero.Parts()) != 0 || len(zero.Bytes()) != 0 {
		t.Error("zero frame")
	}
	raw := []byte("abc")
	f := framing.Whole(raw)
	if &f.Bytes()[0] != &raw[0] || f.Len() != 3 || string(f.Append([]byte("x"))) != "xabc" || len(f.Parts()) != 1 {
		t.Error("whole frame")
	}
	large := framing.Rewrite(bytes.Repeat([]byte("z"), 100_000), []framing.Edit{at(50_000, 50_001, "\r\n")})
	var buf bytes.Buffer
	if n, err := large.WriteTo(&buf); err != nil || n != 100_001 || !bytes.Equal(buf.Bytes(), large.Bytes()) {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	before := buf.Bytes()
	line := large.OneLine()
	if want := bytes.ReplaceAll(before, []byte("\r\n"), []byte("  ")); !bytes.Equal(line.Bytes(), want) {
		t.Error("OneLine left a line break or changed something else")
	}
	if !bytes.Equal(large.Bytes(), before) {
		t.Error("OneLine changed the frame it was given")
	}
	if clean := framing.Whole(raw).OneLine(); &clean.Bytes()[0] != &raw[0] {
		t.Error("OneLine copied a frame without line breaks")
	}
	if got := string(framing.Whole([]byte("\n{\r\n}\r")).OneLine().Bytes()); got != " {  } " {
		t.Errorf("OneLine: %q", got)
	}
}

type brokenWriter struct {
	room int
	err  error
}

func (w *brokenWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.room)
	w.room -= n
	if n < len(p) {
		return n, w.err
	}
	return n, nil
}

func TestFrameWriteToErrors(t *testing.T) {
	f := framing.Rewrite(bytes.Repeat([]byte("z"), 100_000), []framing.Edit{at(50_000, 50_001, "y")})
	boom := errors.New("boom")
	if n, err := f.WriteTo(&brokenWriter{60_000, boom}); n != 60_000 || err != boom {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.WriteTo(&brokenWriter{60_000, nil}); n != 60_000 || err != io.ErrShortWrite {
		t.Errorf("%d, %v", n, err)
	}
}
