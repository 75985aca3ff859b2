package parked

import (
	"cmp"
	"strconv"
	"strings"
)

// decimal is a JSON number as it is, however long: 0.digits times ten to the exp. digits has no zeros at its ends, and is empty
// for zero.
type decimal struct {
	neg    bool
	digits string
	exp    int64
}

// maxExponent is how many digits of an exponent are looked at.
const maxExponent = 15

// parseDecimal reads a valid JSON number; ok is false for one whose exponent is beyond reason.
func parseDecimal(raw []byte) (d decimal, ok bool) {
	text := string(raw)
	text, d.neg = strings.TrimPrefix(text, "-"), strings.HasPrefix(text, "-")
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e := strings.TrimPrefix(text[i+1:], "+")
		if len(e) > maxExponent {
			return d, false
		}
		n, err := strconv.ParseInt(e, 10, 64)
		if err != nil {
			return d, false
		}
		d.exp, text = n, text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	d.exp += int64(len(whole))
	digits := whole + fraction
	bare := strings.TrimLeft(digits, "0")
	d.exp -= int64(len(digits) - len(bare))
	d.digits = strings.TrimRight(bare, "0")
	if d.digits == "" {
		return decimal{}, true
	}
	return d, true
}

// whole reports whether the number is an integer.
func (d decimal) whole() bool { return d.exp >= int64(len(d.digits)) || d.digits == "" }

func (d decimal) String() string {
	sign := ""
	if d.neg {
		sign = "-"
	}
	return sign + "." + d.digits + "e" + strconv.FormatInt(d.exp, 10)
}

// compare orders numbers by value.
func (d decimal) compare(o decimal) int {
	switch {
	case d.sign() != o.sign():
		return cmp.Compare(d.sign(), o.sign())
	case d.neg:
		return o.size(d)
	}
	return d.size(o)
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func (d decimal) size(o decimal) int {
	return cmp.Or(cmp.Compare(d.exp, o.exp), strings.Compare(d.digits, o.digits))
}
