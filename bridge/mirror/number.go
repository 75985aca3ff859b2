package mirror

import "errors"

// maxSafe is the largest integer that every JSON implementation reads exactly (ENC-13).
const maxSafe = 1<<53 - 1

// maxPower is the power of ten of the leading digit of maxSafe; numbers with a higher one are outside.
const maxPower = 15

// expCap bounds an exponent while it is read. It lies above any message length, so digits cannot outweigh it.
const expCap = 1 << 40

var errNoInteger = errors.New("number is not an integer")

// parseInteger returns the integer that a JSON number denotes, whatever its spelling: 42, 42.0, 4.2e1. It is exact,
// never through float64 (ENC-12), and linear in the length. The error is errNoInteger or ErrUnsafe.
func parseInteger(num []byte) (int64, error) {
	n := layout(num)
	if n.first < 0 {
		return 0, nil
	}
	if n.power(n.last) < 0 {
		return 0, errNoInteger
	}
	if n.power(n.first) > maxPower {
		return 0, ErrUnsafe
	}
	v := n.value(num)
	switch {
	case v > maxSafe:
		return 0, ErrUnsafe
	case num[0] == '-':
		return -v, nil
	}
	return v, nil
}

// number is the layout of a JSON number: digit k stands for digit x 10^(whole-1-k+exp).
type number struct {
	whole       int   // digits before the point
	first, last int   // first and last digit that is not 0, -1 if all are
	exp         int64 // written exponent, capped at +-expCap
}

func (n number) power(digit int) int64 { return int64(n.whole-1-digit) + n.exp }

func layout(num []byte) number {
	n := number{whole: -1, first: -1}
	digits := 0
	for i, c := range num {
		switch {
		case '0' <= c && c <= '9':
			if c != '0' {
				n.last = digits
				if n.first < 0 {
					n.first = digits
				}
			}
			digits++
		case c == '.':
			n.whole = digits
		case c == 'e' || c == 'E':
			n.exp = exponent(num[i+1:])
			if n.whole < 0 {
				n.whole = digits
			}
			return n
		}
	}
	if n.whole < 0 {
		n.whole = digits
	}
	return n
}

func exponent(s []byte) int64 {
	var e int64
	for _, c := range s {
		if '0' <= c && c <= '9' {
			e = min(e*10+int64(c-'0'), expCap)
		}
	}
	if len(s) > 0 && s[0] == '-' {
		return -e
	}
	return e
}

// value computes the magnitude of an integer of at most maxPower+1 digits.
func (n number) value(num []byte) int64 {
	var v int64
	digit := 0
	for _, c := range num {
		if c < '0' || c > '9' {
			continue
		}
		if digit >= n.first {
			v = v*10 + int64(c-'0')
		}
		if digit++; digit > n.last {
			break
		}
	}
	for range n.power(n.last) {
		v *= 10
	}
	return v
}

// plainDecimal reports whether a header value is a decimal number as JSON spells it, without exponent (ENC-12).
func plainDecimal(s string) bool {
	i := 0
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := countDigits(s[i:])
	if whole == 0 || (whole > 1 && s[i] == '0') {
		return false
	}
	if i += whole; i == len(s) {
		return true
	}
	return s[i] == '.' && countDigits(s[i+1:]) > 0 && i+1+countDigits(s[i+1:]) == len(s)
}

func countDigits(s string) int {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return i
		}
	}
	return len(s)
}
