package parked

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"time"

	"mcpbridge/bridge"
)

const (
	// prefix begins every request state of a bridge.
	prefix = "mb1."
	// format is the first byte of what is sealed.
	format = 1
	// maxMarks bounds the digests in a state, so that it stays below maxState bytes.
	maxMarks = 24
	// maxState is the longest state that is looked at, in bytes.
	maxState = 512
	// fixedSize is what a state holds besides its digests.
	fixedSize = 1 + 1 + 16 + 2 + 2 + 2 + 16 + 32 + 8 + 1
)

type stateKind byte

const (
	parkedState stateKind = 1 // names a call in the table
	urlState    stateKind = 2 // a call that failed until URLs have been visited (-32042); stands for itself
)

type (
	pid    [16]byte // 128 random bits
	digest [32]byte
	mark   [8]byte // short digest
)

// state is the plain text of a request state (translation 5.5).
type state struct {
	kind    stateKind
	pid     pid    // of a parked call
	round   uint16 // of a parked call: the round it belongs to; of URLs: how many attempts there were
	base    uint16 // of URLs: ordinal of the last question before
	count   uint16 // of URLs: how many questions
	owner   [16]byte
	params  digest // of method and params
	expires time.Time
	marks   []mark // of a parked call: its open questions; of URLs: the ids of the elicitations
}

// ownerOf is what a state holds of a principal.
func ownerOf(p bridge.Principal) (o [16]byte) {
	sum := sha256.Sum256([]byte("principal " + string(p)))
	copy(o[:], sum[:])
	return o
}

func markOf(parts ...[]byte) (m mark) {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
	copy(m[:], h.Sum(nil))
	return m
}

func (s *state) plain() []byte {
	marks := s.marks[:min(len(s.marks), maxMarks)]
	b := make([]byte, 0, fixedSize+len(marks)*len(mark{}))
	b = append(b, format, byte(s.kind))
	b = append(b, s.pid[:]...)
	b = binary.BigEndian.AppendUint16(b, s.round)
	b = binary.BigEndian.AppendUint16(b, s.base)
	b = binary.BigEndian.AppendUint16(b, s.count)
	b = append(b, s.owner[:]...)
	b = append(b, s.params[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(s.expires.UnixMilli()))
	b = append(b, byte(len(marks)))
	for _, m := range marks {
		b = append(b, m[:]...)
	}
	return b
}

func parseState(b []byte) (s state, ok bool) {
	if len(b) < fixedSize || b[0] != format {
		return s, false
	}
	s.kind = stateKind(b[1])
	if s.kind != parkedState && s.kind != urlState {
		return s, false
	}
	b = b[2:]
	take := func(n int) (head []byte) { head, b = b[:n], b[n:]; return head }
	copy(s.pid[:], take(16))
	s.round = binary.BigEndian.Uint16(take(2))
	s.base = binary.BigEndian.Uint16(take(2))
	s.count = binary.BigEndian.Uint16(take(2))
	copy(s.owner[:], take(16))
	copy(s.params[:], take(32))
	s.expires = time.UnixMilli(int64(binary.BigEndian.Uint64(take(8))))
	if n := int(take(1)[0]); len(b) != n*len(mark{}) {
		return s, false
	}
	for len(b) > 0 {
		s.marks = append(s.marks, mark(take(len(mark{}))))
	}
	return s, true
}

// seal returns the state as the client gets it: opaque, different each time.
func (t *Table) seal(s *state) string {
	return prefix + base64.RawURLEncoding.EncodeToString(t.cfg.Box.Seal(s.plain(), t.bound))
}

// open reads a state, and tells nothing about why it does not (MRT-06).
func (t *Table) open(text string) (s state, ok bool) {
	body, found := strings.CutPrefix(text, prefix)
	if !found || len(text) > maxState {
		return s, false
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(body)
	if err != nil {
		return s, false
	}
	plain, ok := t.cfg.Box.Open(sealed, t.bound)
	if !ok {
		return s, false
	}
	return parseState(plain)
}
