package framing

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
)

const (
	// contiguousMax is the size up to which a rewritten frame is one new slice; above, it refers to the original bytes.
	contiguousMax = 64 << 10
	// partMin is the size from which a piece of a larger frame is referred to instead of copied.
	partMin = 4 << 10
)

// Frame is one message ready to be written: raw bytes with edits applied. It may refer to the bytes it was made from, which
// must not change while it lives. The zero Frame is empty. A Frame is a value and may be copied and used concurrently.
type Frame struct {
	one   []byte   // the whole frame if parts is nil
	parts [][]byte // else its parts, none empty
}

// Whole is the frame of raw as it is.
func Whole(raw []byte) Frame { return Frame{one: raw} }

// Rewrite applies edits to raw. The edits may come in any order, insertions at one place are made in the order given. It
// panics if edits overlap or lie outside raw. Up to 64 KiB the result is one new slice; above, the frame refers to raw and to the
// larger edits.
func Rewrite(raw []byte, edits []Edit) Frame {
	if len(edits) == 0 {
		return Whole(raw)
	}
	if !slices.IsSortedFunc(edits, compareEdits) {
		edits = slices.Clone(edits)
		slices.SortStableFunc(edits, compareEdits)
	}
	size := checkEdits(len(raw), edits)
	if size <= contiguousMax {
		return Frame{one: splice(make([]byte, 0, size), raw, edits)}
	}
	var b partBuilder
	done := uint32(0)
	for _, e := range edits {
		b.add(raw[done:e.At.Start])
		b.add(e.New)
		done = e.At.End
	}
	b.add(raw[done:])
	return b.frame()
}

func compareEdits(a, b Edit) int {
	return cmp.Or(cmp.Compare(a.At.Start, b.At.Start), cmp.Compare(a.At.End, b.At.End))
}

// checkEdits returns the size of the result of sorted edits.
func checkEdits(size int, edits []Edit) int {
	limit, done := size, 0
	for _, e := range edits {
		if int(e.At.Start) < done || e.At.End < e.At.Start || int(e.At.End) > limit {
			panic(fmt.Sprintf("cannot rewrite message: edit %d-%d overlaps another or lies outside %d bytes", e.At.Start, e.At.End, limit))
		}
		done = int(e.At.End)
		size += len(e.New) - e.At.Len()
	}
	return size
}

func splice(dst, raw []byte, edits []Edit) []byte {
	done := uint32(0)
	for _, e := range edits {
		dst = append(dst, raw[done:e.At.Start]...)
		dst = append(dst, e.New...)
		done = e.At.End
	}
	return append(dst, raw[done:]...)
}

// partBuilder collects pieces: large ones as they are, small neighbours joined in a copy.
type partBuilder struct {
	parts [][]byte
	small []byte
}

func (b *partBuilder) add(p []byte) {
	if len(p) < partMin {
		b.small = append(b.small, p...)
		return
	}
	b.flush()
	b.parts = append(b.parts, p)
}

func (b *partBuilder) flush() {
	if n := len(b.small); n > 0 {
		b.parts = append(b.parts, b.small[:n:n])
		b.small = b.small[n:]
	}
}

func (b *partBuilder) frame() Frame {
	if b.flush(); len(b.parts) == 1 {
		return Frame{one: b.parts[0]}
	}
	return Frame{parts: b.parts}
}

// Len is the size in bytes.
func (f Frame) Len() int {
	n := len(f.one)
	for _, p := range f.parts {
		n += len(p)
	}
	return n
}

// Append appends the bytes of the frame to dst.
func (f Frame) Append(dst []byte) []byte {
	dst = append(dst, f.one...)
	for _, p := range f.parts {
		dst = append(dst, p...)
	}
	return dst
}

// Bytes returns the frame in one piece, without copying when it is in one piece already. The caller must not change it.
func (f Frame) Bytes() []byte {
	if f.parts == nil {
		return f.one
	}
	return f.Append(make([]byte, 0, f.Len()))
}

// Parts returns the pieces in order, none empty. The caller must not change them.
func (f Frame) Parts() [][]byte {
	if f.parts == nil && len(f.one) > 0 {
		return [][]byte{f.one}
	}
	return f.parts
}

// WriteTo writes the frame piece by piece.
func (f Frame) WriteTo(w io.Writer) (n int64, err error) {
	for _, p := range f.Parts() {
		k, err := w.Write(p)
		if n += int64(k); err != nil {
			return n, err
		}
		if k < len(p) {
			return n, io.ErrShortWrite
		}
	}
	return n, nil
}

// OneLine returns the frame without raw line breaks: CR and LF, which valid JSON has only between tokens, become spaces
// (FRM-04). Pieces without line breaks are not copied.
func (f Frame) OneLine() Frame {
	out := Frame{one: oneLine(f.one), parts: f.parts}
	for i, p := range f.parts {
		q := oneLine(p)
		if len(q) > 0 && &q[0] != &p[0] {
			if &out.parts[0] == &f.parts[0] {
				out.parts = slices.Clone(f.parts)
			}
			out.parts[i] = q
		}
	}
	return out
}

// oneLine returns p if it has no line breaks, else a copy with spaces in their places.
func oneLine(p []byte) []byte {
	if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') < 0 {
		return p
	}
	p = bytes.Clone(p)
	blankBreaks(p)
	return p
}

// blankBreaks replaces CR and LF in p by spaces.
func blankBreaks(p []byte) {
	for _, c := range [2]byte{'\n', '\r'} {
		for at := 0; ; {
			i := bytes.IndexByte(p[at:], c)
			if i < 0 {
				break
			}
			at += i
			p[at] = ' '
		}
	}
}
