package session

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/mcp"
)

// MaxID is the length of the longest sealed id in bytes: it travels in a header of every request, and servers and proxies bound
// those. A session whose handshake makes a longer one gets a random id, and cannot be reopened.
const MaxID = 4096

// Sealer encrypts and authenticates what a session id carries. bound is authenticated but not carried.
type Sealer interface {
	Seal(plain, bound []byte) []byte
	Open(sealed, bound []byte) (plain []byte, ok bool)
}

// record is what a sealed id carries: everything that is needed to open the session again (design decision 6). The endpoint and
// the principal are bound, not carried: an id that comes by another way does not open at all (HTTP-L-29).
type record struct {
	uid     [16]byte
	issued  time.Time
	server  [8]byte // see Digest
	version mcp.Version
	params  []byte // of the client's initialize request, raw
}

// recordFormat is the first byte of a record and of what is bound to it.
const recordFormat = 1

// recordFixed is the length of a record without its version and params.
const recordFixed = 1 + 16 + 8 + 8

func (r *record) encode() []byte {
	b := make([]byte, 0, recordFixed+1+len(r.version)+len(r.params))
	b = append(append(b, recordFormat), r.uid[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.issued.UnixNano()))
	b = append(b, r.server[:]...)
	b = append(append(b, byte(len(r.version))), r.version...)
	return append(b, r.params...)
}

func decodeRecord(b []byte) (r record, ok bool) {
	if len(b) < recordFixed+1 || b[0] != recordFormat {
		return record{}, false
	}
	r.uid = [16]byte(b[1:])
	r.issued = time.Unix(0, int64(binary.BigEndian.Uint64(b[17:])))
	r.server = [8]byte(b[25:])
	n := int(b[recordFixed])
	if b = b[recordFixed+1:]; len(b) < n {
		return record{}, false
	}
	r.version, r.params = mcp.Version(b[:n]), bytes.Clone(b[n:])
	return r, true
}

// bound is what an id is good for. Lengths keep the two names apart.
func bound(endpoint string, p bridge.Principal) []byte {
	b := append(make([]byte, 0, 4+len(endpoint)+len(p)), recordFormat)
	b = append(binary.AppendUvarint(b, uint64(len(endpoint))), endpoint...)
	return append(b, p...)
}

// idText is the spelling of ids: visible ASCII that needs no escapes in headers (HTTP-L-18). One id has one spelling.
var idText = base64.RawURLEncoding.Strict()

// seal returns the sealed id of a record, "" if it would be too long.
func (st *Store) seal(r *record, p bridge.Principal) string {
	if st.cfg.Sealer == nil || len(r.params) > MaxID || len(r.version) > 255 {
		return ""
	}
	raw := st.cfg.Sealer.Seal(r.encode(), bound(st.cfg.Endpoint, p))
	if idText.EncodedLen(len(raw)) > MaxID {
		return ""
	}
	return idText.EncodeToString(raw)
}

// unseal reads a sealed id of this endpoint and that principal.
func (st *Store) unseal(id string, p bridge.Principal) (r record, ok bool) {
	if st.cfg.Sealer == nil || len(id) > MaxID {
		return record{}, false
	}
	raw, err := idText.DecodeString(id)
	if err != nil || idText.EncodedLen(len(raw)) != len(id) { // line breaks are passed over otherwise
		return record{}, false
	}
	plain, ok := st.cfg.Sealer.Open(raw, bound(st.cfg.Endpoint, p))
	if !ok {
		return record{}, false
	}
	return decodeRecord(plain)
}

// randomID returns 192 random bits in visible ASCII (HTTP-L-18, SEC-02).
func randomID() string {
	var b [24]byte
	_, _ = rand.Read(b[:])
	return idText.EncodeToString(b[:])
}

func newUID() (uid [16]byte) {
	_, _ = rand.Read(uid[:])
	return uid
}
