// Package seal holds the key ring of a bridge and boxes: authenticated encryption of short records that travel through the
// hands of clients, such as session ids. It knows neither what is sealed nor where it goes.
package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
)

const (
	// MaxKeys is the number of keys a ring may have.
	MaxKeys = 16
	// Overhead is by how many bytes a sealed text is longer than the plain one: id of the key, nonce and tag.
	Overhead = idSize + nonceSize + tagSize

	keySize   = 32
	idSize    = 4
	nonceSize = 12
	tagSize   = 16
)

// Ring is the keys of a bridge. The first seals, all open, so that keys can be changed while what they sealed is about: put the
// new key in front, and take the old one away when all it sealed is over. It may be used by several goroutines.
type Ring struct {
	keys [][keySize]byte
	ids  [][]byte
}

// NewRing returns a ring of 1 to MaxKeys different keys.
func NewRing(keys ...[32]byte) (*Ring, error) {
	if len(keys) == 0 {
		return nil, errors.New("cannot make key ring: there is no key")
	}
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("cannot make key ring: there are %d keys, at most %d can be used", len(keys), MaxKeys)
	}
	r := &Ring{}
	for i, k := range keys {
		id := derive(k, "mcpbridge key id", idSize)
		for j, other := range r.ids {
			if bytes.Equal(id, other) {
				return nil, fmt.Errorf("cannot make key ring: keys %d and %d are the same", j+1, i+1)
			}
		}
		r.keys, r.ids = append(r.keys, k), append(r.ids, id)
	}
	return r, nil
}

// derive returns n bytes that depend on a key and a label (RFC 5869). Nothing can be concluded from them about the key, or about
// what another label gives.
func derive(key [keySize]byte, label string, n int) []byte {
	out, err := hkdf.Key(sha256.New, key[:], nil, label, n)
	if err != nil {
		panic("seal: " + err.Error()) // n is a small constant of ours
	}
	return out
}

// Box seals and opens with keys of its own: what one label sealed opens under no other. Under one key at most 2^32 texts may be
// sealed, because nonces are random (NIST SP 800-38D, 8.3): 100 a second for 16 months. It may be used by several goroutines.
type Box struct {
	ids   [][]byte
	aeads []cipher.AEAD
}

// Box returns the box of a label.
func (r *Ring) Box(label string) *Box {
	b := &Box{ids: r.ids}
	for _, k := range r.keys {
		block, err := aes.NewCipher(derive(k, "mcpbridge box "+label, keySize))
		if err != nil {
			panic("seal: " + err.Error()) // only of a key of another length
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			panic("seal: " + err.Error()) // only of another cipher than AES
		}
		b.aeads = append(b.aeads, aead)
	}
	return b
}

// Seal returns plain encrypted and authenticated with the ring's first key: id of the key, nonce, ciphertext, tag. bound is
// authenticated too but not carried: Open needs the same.
func (b *Box) Seal(plain, bound []byte) []byte {
	out := make([]byte, 0, len(plain)+Overhead)
	return b.aeads[0].Seal(append(out, b.ids[0]...), nil, plain, bound)
}

// Open returns what Seal was given. It tells nothing about why it does not, and does the same work whether the key is unknown
// or the text has been tampered with.
func (b *Box) Open(sealed, bound []byte) (plain []byte, ok bool) {
	if len(sealed) < Overhead {
		return nil, false
	}
	which, known := 0, 0
	for i, id := range b.ids {
		same := subtle.ConstantTimeCompare(sealed[:idSize], id)
		which = subtle.ConstantTimeSelect(same, i, which)
		known |= same
	}
	plain, err := b.aeads[which].Open(nil, nil, sealed[idSize:], bound)
	if err != nil || known == 0 {
		return nil, false
	}
	return plain, true
}
