package front

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// countingBody records how much was read of it and the largest buffer it was offered.
type countingBody struct {
	io.Reader
	reads, largest int
}

func (b *countingBody) Read(p []byte) (int, error) {
	b.reads++
	b.largest = max(b.largest, len(p))
	return b.Reader.Read(p)
}

func (b *countingBody) Close() error { return nil }

func posted(body io.Reader, length int64) (*http.Request, *countingBody) {
	c := &countingBody{Reader: body}
	return &http.Request{Method: http.MethodPost, Body: c, ContentLength: length, Header: http.Header{}}, c
}

func TestReadBodyLimit(t *testing.T) { // case 35, SEC-07
	const limit = 5000
	for _, chunked := range []bool{false, true} {
		for _, size := range []int{0, 1, limit - 1, limit, limit + 1, limit * 3} {
			want := bytes.Repeat([]byte("x"), size)
			length := int64(size)
			if chunked {
				length = -1
			}
			r, c := posted(iotest.HalfReader(bytes.NewReader(want)), length)
			got, err := ReadBody(r, limit, nil)
			if size <= limit {
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("chunked %v, %d bytes: got %d, %v", chunked, size, len(got), err)
				}
				continue
			}
			if err == nil || err.Status != 413 || err.Code != -32600 || !strings.Contains(err.Message, "5000") || !strings.Contains(err.Message, "limits.bodyBytes") {
				t.Errorf("chunked %v, %d bytes: %v, want 413 naming limit and setting", chunked, size, err)
			}
			if !chunked && c.reads > 0 {
				t.Errorf("%d bytes: read before the refusal", size)
			}
			if c.largest > limit+1 {
				t.Errorf("chunked %v: offered a buffer of %d bytes", chunked, c.largest)
			}
		}
	}
}

func TestReadBodyDefaultLimit(t *testing.T) { // SEC-07
	r, _ := posted(strings.NewReader(""), DefaultBodyLimit+1)
	if _, err := ReadBody(r, 0, nil); err == nil || err.Status != 413 || !strings.Contains(err.Message, "67108864") {
		t.Errorf("got %v, want 413 naming the default", err)
	}
	r, _ = posted(strings.NewReader(""), DefaultBodyLimit)
	if _, err := ReadBody(r, 0, nil); err == nil || err.Status != 400 {
		t.Errorf("got %v, want 400 for the missing bytes", err)
	}
}

func TestReadBodyOfAnyLimit(t *testing.T) {
	r, _ := posted(strings.NewReader("{}"), -1)
	if got, err := ReadBody(r, 1<<63-1, nil); err != nil || string(got) != "{}" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestReadBodyLarge(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16)
	for _, length := range []int64{int64(len(want)), -1} {
		r, _ := posted(bytes.NewReader(want), length)
		got, err := ReadBody(r, 0, nil)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("length %d: got %d bytes, %v", length, len(got), err)
		}
		if length > 0 && cap(got) != len(want) {
			t.Errorf("allocated %d bytes for %d", cap(got), len(want))
		}
	}
}

func TestReadBodySmallIsOneAllocation(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0"}`)
	src := bytes.NewReader(data)
	r, _ := posted(src, int64(len(data)))
	n := testing.AllocsPerRun(100, func() {
		src.Reset(data)
		if _, err := ReadBody(r, 0, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A Content-Length alone must not cost memory.
func TestReadBodyAllocatesWhatArrives(t *testing.T) { // SEC-07
	r, c := posted(strings.NewReader("{"), DefaultBodyLimit)
	if _, err := ReadBody(r, 0, nil); err == nil {
		t.Fatal("a cut body was accepted")
	}
	if c.largest > firstAlloc {
		t.Errorf("offered %d bytes for one that arrived", c.largest)
	}
}

func TestReadBodyCut(t *testing.T) { // case 42
	gone := errors.New("connection reset")
	tests := []struct {
		name   string
		body   io.Reader
		length int64
		cause  error
	}{
		{"short", strings.NewReader("12345678901234567890"), 100, io.ErrUnexpectedEOF},
		{"nothing", strings.NewReader(""), 100, io.EOF},
		{"reset", iotest.ErrReader(gone), 100, gone},
		{"chunked, cut", io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), -1, io.ErrUnexpectedEOF},
		{"chunked, reset", iotest.ErrReader(gone), -1, gone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _ := posted(tt.body, tt.length)
			body, err := ReadBody(r, 1000, nil)
			if body != nil || err == nil || err.Status != 400 || !errors.Is(err, tt.cause) {
				t.Errorf("got %q, %v (cause %v), want 400 because of %v", body, err, errors.Unwrap(err), tt.cause)
			}
		})
	}
}
