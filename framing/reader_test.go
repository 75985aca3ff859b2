package framing_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"mcpbridge/framing"
	"pgregory.net/rapid"
)

// chunked gives its data in reads of the sizes named, then err.
type chunked struct {
	data  []byte
	sizes []int
	err   error
	last  bool // the error comes with the last data
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, c.err
	}
	n := min(len(c.data), len(p))
	if len(c.sizes) > 0 {
		n = min(n, c.sizes[0])
		c.sizes = append(c.sizes[1:], c.sizes[0])
	}
	copy(p, c.data[:n])
	if c.data = c.data[n:]; len(c.data) == 0 && c.last {
		return n, c.err
	}
	return n, nil
}

// got is what one Next gave.
type got struct {
	line string
	open bool // not terminated
	long bool
}

func readAll(r *framing.Reader) (list []got, end error) {
	for {
		line, terminated, err := r.Next()
		var tooLong *framing.LineError
		switch {
		case errors.As(err, &tooLong):
			list = append(list, got{long: true})
		case err != nil:
			return list, err
		default:
			list = append(list, got{line: string(line), open: !terminated})
		}
	}
}

func TestReader(t *testing.T) {
	tests := []struct {
		name, text string
		limit      int
		want       []got
	}{
		{"empty", "", 10, nil},
		{"two lines", "a\nb\n", 10, []got{{line: "a"}, {line: "b"}}},
		{"no final newline", "a\nb", 10, []got{{line: "a"}, {line: "b", open: true}}}, // case 12
		{"crlf", "a\r\n\r\nb\r\n", 10, []got{{line: "a"}, {line: "b"}}},               // case 5
		{"one carriage return only", "a\r\r\n", 10, []got{{line: "a\r"}}},
		{"carriage return inside", "a\rb\n", 10, []got{{line: "a\rb"}}},
		{"blank lines", "\n\n \t\n\r\na\n\n  ", 10, []got{{line: "a"}}}, // FRM-07
		{"spaces stay", "  a  \n", 10, []got{{line: "  a  "}}},
		{"bom", "\xef\xbb\xbfa\n\xef\xbb\xbfb\n", 10, []got{{line: "a"}, {line: "\xef\xbb\xbfb"}}},
		{"bom alone", "\xef\xbb\xbf", 10, nil},
		{"bom and newline", "\xef\xbb\xbf\na\n", 10, []got{{line: "a"}}},
		{"half a bom", "\xef\xbb\na\n", 10, []got{{line: "\xef\xbb"}, {line: "a"}}},
		{"bom after a blank line", "\n\xef\xbb\xbfa\n", 10, []got{{line: "\xef\xbb\xbfa"}}},
		{"limit n", "12345\nab\n", 5, []got{{line: "12345"}, {line: "ab"}}},
		{"limit n+1", "123456\nab\n", 5, []got{{long: true}, {line: "ab"}}},
		{"limit n with crlf", "12345\r\nab\n", 5, []got{{line: "12345"}, {line: "ab"}}},
		{"limit n+1 with crlf", "123456\r\nab\n", 5, []got{{long: true}, {line: "ab"}}},
		{"limit n with bom", "\xef\xbb\xbf12345\nab\n", 5, []got{{line: "12345"}, {line: "ab"}}},
		{"limit n+1 with bom", "\xef\xbb\xbf123456\nab\n", 5, []got{{long: true}, {line: "ab"}}},
		{"limit 1 with bom", "\xef\xbb\xbf1\n\xef\xbb\n", 1, []got{{line: "1"}, {long: true}}},
		{"limit n at the end", "12345", 5, []got{{line: "12345", open: true}}},
		{"limit n+1 at the end", "123456", 5, []got{{long: true}}},
		{"limit n and a carriage return at the end", "12345\r", 5, []got{{long: true}}},
		{"several long lines", "1234567890123\n1234567890\nab\n", 5, []got{{long: true}, {long: true}, {line: "ab"}}},
		{"long line of spaces", strings.Repeat(" ", 20) + "\nab\n", 5, []got{{long: true}, {line: "ab"}}},
		{"character over reads", "世\n", 10, []got{{line: "世"}}}, // case 1
		{"other line separators", "a\u2028\u0085\v\fb\n", 20, []got{{line: "a\u2028\u0085\v\fb"}}},
	}
	for _, tt := range tests {
		for name, source := range map[string]io.Reader{
			"whole": &chunked{data: []byte(tt.text), err: io.EOF}, "with the end": &chunked{data: []byte(tt.text), err: io.EOF, last: true},
			"byte by byte": &chunked{data: []byte(tt.text), sizes: []int{1}, err: io.EOF}, "in twos": &chunked{data: []byte(tt.text), sizes: []int{2}, err: io.EOF, last: true},
		} {
			list, err := readAll(framing.NewReader(source, tt.limit))
			if fmt.Sprint(list) != fmt.Sprint(tt.want) || err != io.EOF {
				t.Errorf("%s, %s: %+v, %v; want %+v", tt.name, name, list, err, tt.want)
			}
		}
	}
}

func TestReaderErrors(t *testing.T) {
	boom := errors.New("boom")
	r := framing.NewReader(&chunked{data: []byte("a\nb"), err: boom}, 10)
	if list, err := readAll(r); err != boom || len(list) != 1 || list[0].line != "a" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, _, err := r.Next(); err != boom {
		t.Errorf("the error is not final: %v", err)
	}
	if _, err := readAll(framing.NewReader(iotest.ErrReader(io.ErrUnexpectedEOF), 10)); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	if _, err := readAll(framing.NewReader(idle{}, 10)); err != io.ErrNoProgress {
		t.Error(err)
	}
}

// idle reads nothing, without an error, for ever.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

func TestLineError(t *testing.T) {
	for _, size := range []int{255, 256, 257, 200_000} {
		line := strings.Repeat("abcdefghij", size/10+1)[:size]
		_, terminated, err := framing.NewReader(strings.NewReader(line+"\n"), 100).Next()
		var e *framing.LineError
		if !errors.As(err, &e) || terminated || e.Limit != 100 || string(e.Prefix) != line[:min(size, 256)] {
			t.Fatalf("%d: %v, %v", size, terminated, err)
		}
	}
	if e := (&framing.LineError{Limit: 7}); e.Error() != "cannot read line: longer than 7 bytes" {
		t.Error(e)
	}
	// A limit above the buffer: the prefix is the beginning of the line, not of its last piece.
	line := "start" + strings.Repeat("x", 300_000)
	_, _, err := framing.NewReader(strings.NewReader(line), 200_000).Next()
	var e *framing.LineError
	if !errors.As(err, &e) || !strings.HasPrefix(string(e.Prefix), "start") || len(e.Prefix) != 256 {
		t.Error(err)
	}
}

// endless gives n bytes of one line and counts the largest read it was asked for.
type endless struct{ n, asked int }

func (e *endless) Read(p []byte) (int, error) {
	e.asked = max(e.asked, len(p))
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.n)
	e.n -= n
	for i := range p[:n] {
		p[i] = 'x'
	}
	return n, nil
}

// Memory stays bounded by the limit while an overlong line goes by.
func TestReaderMemoryOfLongLine(t *testing.T) {
	const limit = 1 << 20
	source := &endless{n: 200 << 20}
	var list []got
	res := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			source.n = 200 << 20
			list, _ = readAll(framing.NewReader(source, limit))
		}
	})
	if len(list) != 1 || !list[0].long {
		t.Fatalf("%d results", len(list))
	}
	if n := res.AllocedBytesPerOp(); n > 4*limit {
		t.Errorf("%d bytes allocated for a line of 200 MiB above a limit of 1 MiB", n)
	}
}

// Lines around the sizes at which buffers change, in mixed order, and lines of the limit and one more.
func TestReaderSizes(t *testing.T) {
	const k = 1 << 10
	limit := 5*k*k + 3
	sizes := []int{1, 100, 64*k - 2, 64*k - 1, 64 * k, 64*k + 1, 10, 128*k - 1, 128 * k, 128*k + 1, 5, k * k, 7, 40 * k, 40 * k, 40 * k, 3, limit - 1, limit, limit + 1, 9, 4*k*k + 64*k, 8}
	for _, end := range []string{"\n", "\r\n"} {
		var b bytes.Buffer
		for i, n := range sizes {
			b.WriteString(strings.Repeat(string(rune('a'+i)), n) + end)
		}
		for _, read := range [][]int{nil, {1000}, {64 * k, 1}, {3, 70_000}} {
			r := framing.NewReader(&chunked{data: b.Bytes(), sizes: append([]int(nil), read...), err: io.EOF}, limit)
			var lines [][]byte
			for i, n := range sizes {
				line, terminated, err := r.Next()
				if n > limit {
					var e *framing.LineError
					if !errors.As(err, &e) {
						t.Fatalf("line of %d: %v", n, err)
					}
					lines = append(lines, nil)
					continue
				}
				if err != nil || !terminated || len(line) != n || bytes.Count(line, []byte{byte('a' + i)}) != n {
					t.Fatalf("line %d of %d bytes: %d bytes, %v, %v", i, n, len(line), terminated, err)
				}
				if cap(line) > n+64+n/4 {
					t.Errorf("line of %d bytes keeps %d", n, cap(line))
				}
				lines = append(lines, line)
			}
			if _, _, err := r.Next(); err != io.EOF {
				t.Fatal(err)
			}
			for i, line := range lines { // lines are the caller's: later reads did not touch them
				if bytes.Count(line, []byte{byte('a' + i)}) != len(line) {
					t.Fatalf("line %d changed", i)
				}
			}
		}
	}
}

// oracle cuts a text the slow way.
func oracle(text string, limit int) (list []got) {
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	for text != "" {
		line, rest, terminated := strings.Cut(text, "\n")
		text = rest
		if terminated {
			line = strings.TrimSuffix(line, "\r")
		}
		switch {
		case len(line) > limit:
			list = append(list, got{long: true})
		case strings.Trim(line, " \t\r") != "":
			list = append(list, got{line: line, open: !terminated})
		}
	}
	return list
}

func TestReaderProperties(t *testing.T) {
	piece := rapid.OneOf(rapid.SampledFrom([]string{"\n", "\r\n", "\r", " ", "\xef\xbb\xbf", "\xef", "世", "\xff", "{}", "\t"}), rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat("y", rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(65_000, 66_000), rapid.IntRange(0, 200_000)).Draw(t, "run"))
	}))
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "text"), "")
		limit := rapid.OneOf(rapid.IntRange(0, 50), rapid.IntRange(65_530, 65_540), rapid.IntRange(0, 300_000)).Draw(t, "limit")
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 70_000)), 0, 4).Draw(t, "reads")
		if len(text) < 3000 && rapid.Bool().Draw(t, "single bytes") {
			sizes = []int{1}
		}
		list, err := readAll(framing.NewReader(&chunked{data: []byte(text), sizes: sizes, err: io.EOF, last: rapid.Bool().Draw(t, "last")}, limit))
		want := oracle(text, limit)
		if err != io.EOF || len(list) != len(want) {
			t.Fatalf("%d lines, want %d, %v", len(list), len(want), err)
		}
		for i := range list {
			if list[i] != want[i] {
				t.Fatalf("line %d: %.50q (%d bytes), want %.50q (%d bytes)", i, list[i].line, len(list[i].line), want[i].line, len(want[i].line))
			}
		}
	})
}
