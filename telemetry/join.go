package telemetry

import (
	"time"

	"mcpbridge/bridge/mask"
)

// maxHeld is how many processes may have a cut line that waits for its rest.
const maxHeld = 64

// overlap is how many bytes of a cut line are held back until the rest is known: a secret up to that length is found also
// where the cut goes through it.
const overlap = 4 << 10

// joiner hides secrets, also in lines that come in pieces.
type joiner struct {
	mask mask.Masker
	held map[string]held // by process
}

// held is the end of a piece.
type held struct {
	at   time.Time
	text string
}

func (j *joiner) holds() bool { return len(j.held) > 0 }

// add emits what of an entry can be shown now.
func (j *joiner) add(e entry, emit func(at time.Time, process, text string)) {
	if e.note {
		j.flush(e.at, emit)
		emit(e.at, "", e.text)
		return
	}
	text := e.text
	if h, ok := j.held[e.process]; ok {
		delete(j.held, e.process)
		text = h.text + text
	}
	text = j.mask.Text(text)
	if !e.full {
		emit(e.at, e.process, j.show(text))
		return
	}
	if len(j.held) == maxHeld {
		j.flush(e.at, emit)
	}
	cut := 0
	if len(text) > overlap {
		cut = runeStart(text, len(text)-overlap)
		emit(e.at, e.process, j.show(text[:cut]))
	}
	if j.held == nil {
		j.held = map[string]held{}
	}
	j.held[e.process] = held{e.at, text[cut:]}
}

// flush emits what was held back at until or before.
func (j *joiner) flush(until time.Time, emit func(at time.Time, process, text string)) {
	for process, h := range j.held {
		if !h.at.After(until) {
			delete(j.held, process)
			emit(h.at, process, j.show(h.text))
		}
	}
}

// show makes text fit to be shown. It is masked again, because removing control sequences may have joined a secret.
func (j *joiner) show(text string) string {
	if plain := Printable(text); plain != text {
		return j.mask.Text(plain)
	}
	return text
}
