package sse

import (
	"bytes"
	"strconv"

	"mcpbridge/framing"
)

// Tail ends an event begun with [Head].
const Tail = "\n\n"

// AppendEvent appends an event in wire form. An empty id gives no id line, a name of "" or "message" no event line, a
// negative retry (milliseconds) no retry line. Data with line breaks becomes several data lines; the zero Frame gives an empty data line,
// as a priming event has it (HTTP-L-07).
func AppendEvent(dst []byte, id, name string, retry int, data framing.Frame) []byte {
	dst = Head(dst, id, name, retry)
	if at := len(dst); hasBreak(data) {
		dst = appendLines(dst[:at-len(dataField)], data.Bytes())
	} else {
		dst = data.Append(dst)
	}
	return append(dst, Tail...)
}

const dataField = "data: "

// Head appends what comes before the data of an event, up to and including "data: ". The caller writes the data, which must hold
// no line break (see framing.Frame.OneLine), and [Tail]. The arguments are those of [AppendEvent].
func Head(dst []byte, id, name string, retry int) []byte {
	if id != "" {
		dst = appendField(dst, "id: ", id)
	}
	if name != "" && name != defaultName {
		dst = appendField(dst, "event: ", name)
	}
	if retry >= 0 {
		dst = append(dst, "retry: "...)
		dst = append(strconv.AppendInt(dst, int64(retry), 10), '\n')
	}
	return append(dst, dataField...)
}

// AppendComment appends a comment of one line, which keeps a connection alive and carries nothing.
func AppendComment(dst []byte, text string) []byte {
	return append(appendField(dst, ": ", text), '\n')
}

// appendField appends one line. Bytes that would end the line, or make a reader ignore an id, become spaces: a value can never
// add fields of its own.
func appendField(dst []byte, prefix, value string) []byte {
	dst = append(dst, prefix...)
	for i := range len(value) {
		c := value[i]
		if c == '\r' || c == '\n' || c == 0 {
			c = ' '
		}
		dst = append(dst, c)
	}
	return append(dst, '\n')
}

func hasBreak(f framing.Frame) bool {
	for _, p := range f.Parts() {
		if bytes.IndexByte(p, '\n') >= 0 || bytes.IndexByte(p, '\r') >= 0 {
			return true
		}
	}
	return false
}

// appendLines appends data as one data line for each of its lines, without the last line end.
func appendLines(dst, data []byte) []byte {
	for {
		dst = append(dst, dataField...)
		i := bytes.IndexAny(data, "\r\n")
		if i < 0 {
			return append(dst, data...)
		}
		dst = append(append(dst, data[:i]...), '\n')
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			i++
		}
		data = data[i+1:]
	}
}
