package facts

import (
	"encoding/binary"
	"time"

	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/session"
)

// A record is
//
//	1  format, recordFormat
//	1  flags
//	1  log level plus one, 0 for none
//	8  end of life, nanoseconds since 1970, 0 for never
//	8  last use, the same
//	   subscriptions: length as a varint, raw JSON string; and so on
//
// in this order, numbers with the highest byte first.
const (
	recordFormat = 1
	fixedSize    = 19

	flagBuried  = 1 << 0
	flagRunning = 1 << 1
)

func encode(f session.Fact) []byte {
	size := fixedSize
	for _, uri := range f.Subscriptions {
		size += binary.MaxVarintLen32 + len(uri)
	}
	b := make([]byte, 3, size)
	b[0] = recordFormat
	if f.Buried {
		b[1] |= flagBuried
	}
	if f.Running {
		b[1] |= flagRunning
	}
	b[2] = byte(f.Level + 1)
	b = appendTime(appendTime(b, f.End), f.Used)
	for _, uri := range f.Subscriptions {
		b = append(binary.AppendUvarint(b, uint64(len(uri))), uri...)
	}
	return b
}

// decode reads a record; ok is false if it is none, or of a later format.
func decode(b []byte) (f session.Fact, ok bool) {
	if len(b) < fixedSize || b[0] != recordFormat {
		return session.Fact{}, false
	}
	f = session.Fact{Buried: b[1]&flagBuried != 0, Running: b[1]&flagRunning != 0, Level: mcp.Level(b[2]) - 1,
		End: timeAt(b[3:]), Used: timeAt(b[11:])}
	if f.Level.String() == mcp.NoLevel.String() {
		f.Level = mcp.NoLevel
	}
	for b = b[fixedSize:]; len(b) > 0; {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return session.Fact{}, false
		}
		f.Subscriptions = append(f.Subscriptions, string(b[size:size+int(n)]))
		b = b[size+int(n):]
	}
	return f, true
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.BigEndian.AppendUint64(b, 0)
	}
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixNano()))
}

func timeAt(b []byte) time.Time {
	n := int64(binary.BigEndian.Uint64(b))
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// supersedes reports whether a record takes the place of an older one: never that of a buried session, nor of a later use, unless
// that lies in the future, because a clock was wrong.
func supersedes(rec, old []byte) bool {
	f, _ := decode(rec)
	o, ok := decode(old)
	switch {
	case !ok || f.Buried:
		return true
	case o.Buried:
		return false
	}
	return !o.Used.After(f.Used) || o.Used.After(time.Now())
}
