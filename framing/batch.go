package framing

// SplitBatch cuts a JSON array into its elements, sub-slices of raw without surrounding white space (FRM-24). An empty array
// gives an empty list. It is as strict as [Scan] at the level of JSON and does not look into the elements. Every error is
// a *[ScanError]: -32700 if raw is not JSON, -32600 if it is no array.
func SplitBatch(raw []byte) ([][]byte, error) {
	s := scanner{b: raw}
	start := s.space(0)
	if s.at(start) != '[' {
		return nil, s.noArray(start)
	}
	list, end := s.elements(start + 1)
	if end >= 0 {
		if end = s.space(end); end < len(raw) {
			s.fail(end, "data behind the array")
		}
	}
	if s.reason != "" {
		return nil, &ScanError{Code: codeParse, Reason: s.reason, Offset: s.off}
	}
	out := make([][]byte, len(list))
	for i, e := range list {
		out[i] = e.of(raw)
	}
	return out, nil
}

// noArray makes the error for a text whose first byte, at start, opens no array.
func (s *scanner) noArray(start int) *ScanError {
	end := s.value(start, 0)
	if end >= 0 {
		if end = s.space(end); end < len(s.b) {
			end = s.fail(end, "data behind the value")
		}
	}
	if end < 0 {
		return &ScanError{Code: codeParse, Reason: s.reason, Offset: s.off}
	}
	return &ScanError{Code: codeInvalid, Reason: "not an array", Offset: start}
}

// ArrayLonger reports whether a valid JSON array, white space around it allowed, has more than n elements, n at least 1. It stops at
// the first one too many and spends no memory, so that a limit can be held before [SplitBatch] makes a list. Of anything but
// a valid array it says nothing.
func ArrayLonger(array []byte, n int) bool {
	depth, commas := 0, 0
	for i := 0; i < len(array); i++ {
		switch array[i] {
		case '"':
			i = closingQuote(array, i+1)
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth != 1 {
				continue
			}
			if commas++; commas >= n {
				return true
			}
		}
	}
	return false
}

// closingQuote returns the offset of the quote that ends a string whose content begins at i, or len(raw).
func closingQuote(raw []byte, i int) int {
	for ; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}
