package sse

import (
	"bytes"
	"io"
	"math"
	"strconv"
)

const (
	defaultName = "message"
	bufferSize  = 32 << 10
	emptyReads  = 100 // reads without data or error that are tolerated in a row
)

// Event is one server-sent event with data.
type Event struct {
	ID    string // last event id of the stream as of this event
	HasID bool   // the event itself has an id
	Name  string // "message" when the event has none
	Data  []byte // owned by the caller, never empty
	Retry int    // milliseconds, -1 if the event has none
}

// EventTooLarge reports an event whose data, or one of whose other fields, is larger than the decoder takes. It ends the
// stream.
type EventTooLarge struct{ Limit int }

func (e *EventTooLarge) Error() string {
	return "cannot read event: larger than " + strconv.Itoa(e.Limit) + " bytes"
}

// Decoder parses an event stream (FRM-35). Lines end with LF, CR or CR LF; data lines are joined by LF; comments and
// unknown fields are ignored; an event that the stream does not finish is dropped. An event without data, or with empty
// data as a priming event has it, is not returned but its id and retry count. Data are the bytes of the stream, invalid
// UTF-8 included. A Decoder is for one goroutine.
type Decoder struct {
	src   source
	limit int

	id    string // id field seen last, kept across events
	last  string // id as of the last finished event
	retry int
	ev    Event  // the event so far, save its data
	data  buffer // its data lines, joined
	lines int    // data lines of the event so far
	err   error
}

// NewDecoder returns a Decoder of events of at most limit bytes of data. It buffers 32 KiB beside the data of one event.
func NewDecoder(r io.Reader, limit int) *Decoder {
	return &Decoder{src: source{r: r}, limit: limit, retry: -1, ev: Event{Retry: -1}}
}

// LastID is the last event id of the stream: of the last finished event that had one, "" if none had.
func (d *Decoder) LastID() string { return d.last }

// Retry is the last reconnection time the stream has set, in milliseconds, -1 if none.
func (d *Decoder) Retry() int { return d.retry }

// Next returns the next event with data. Errors are final: io.EOF, what the stream failed with, or *[EventTooLarge].
func (d *Decoder) Next() (Event, error) {
	for d.err == nil {
		line, whole, err := d.src.line()
		switch {
		case err != nil:
			d.err = err
		case !whole:
			d.err = d.long(line)
		case len(line) == 0:
			if ev, ok := d.dispatch(); ok {
				return ev, nil
			}
		default:
			d.err = d.field(line)
		}
	}
	d.data = buffer{}
	return Event{}, d.err
}

// dispatch ends the event and reports whether it has data.
func (d *Decoder) dispatch() (Event, bool) {
	ev := d.ev
	ev.Data = d.data.take()
	d.last, d.ev, d.lines = d.id, Event{Retry: -1}, 0
	if ev.ID = d.last; ev.Name == "" {
		ev.Name = defaultName
	}
	return ev, len(ev.Data) > 0
}

// field takes one whole line that is not blank.
func (d *Decoder) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return d.addData(value, true)
	case "event":
		d.ev.Name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			d.id, d.ev.HasID = string(value), true
		}
	case "retry":
		if ms, ok := digits(value); ok {
			d.retry, d.ev.Retry = ms, ms
		}
	}
	return nil
}

// digits reads a decimal number; what is beyond 32 bits becomes the largest one.
func digits(value []byte) (int, bool) {
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	return n, len(value) > 0
}

// addData adds to the data of the event; begin tells that a new data line begins.
func (d *Decoder) addData(value []byte, begin bool) error {
	if begin {
		if d.lines++; d.lines > 1 {
			d.data.add([]byte{'\n'})
		}
	}
	if d.data.size+len(value) > d.limit {
		return &EventTooLarge{Limit: d.limit}
	}
	d.data.add(value)
	return nil
}

// long takes a line that does not fit the buffer, of which head is the beginning, through to its end.
func (d *Decoder) long(head []byte) error {
	name, value, found := bytes.Cut(head, []byte{':'})
	isData := found && string(name) == "data"
	if !isData && found && (string(name) == "id" || string(name) == "event" || string(name) == "retry") {
		return &EventTooLarge{Limit: bufferSize}
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	for begin, whole := true, false; ; begin = false {
		if isData {
			if err := d.addData(value, begin); err != nil {
				return err
			}
		}
		if whole {
			return nil
		}
		var err error
		if value, whole, err = d.src.line(); err != nil {
			return err
		}
	}
}
