package sse

const pieceMax = 4 << 20 // largest piece of a buffer that grows

// buffer collects bytes in pieces, so that large data are copied once more only, into a slice without spare room.
type buffer struct {
	pieces [][]byte
	size   int
}

func (b *buffer) add(p []byte) {
	if n := len(b.pieces); n > 0 {
		last := b.pieces[n-1]
		k := min(len(p), cap(last)-len(last))
		b.pieces[n-1] = append(last, p[:k]...)
		b.size += k
		p = p[k:]
	}
	if len(p) > 0 {
		room := max(len(p), min(b.size, pieceMax))
		b.pieces = append(b.pieces, append(make([]byte, 0, room), p...))
		b.size += len(p)
	}
}

// take returns the bytes for the caller to own and empties the buffer.
func (b *buffer) take() []byte {
	var out []byte
	switch len(b.pieces) {
	case 0:
	case 1:
		out = b.pieces[0]
	default:
		out = make([]byte, 0, b.size)
		for _, p := range b.pieces {
			out = append(out, p...)
		}
	}
	clear(b.pieces)
	b.pieces, b.size = b.pieces[:0], 0
	return out
}
