package exchange

import (
	"bytes"
	"strings"
	"testing"

	"mcpbridge/test/internal/e2e"
	"mcpbridge/test/internal/jscan"
)

// waiting is a call that its server does not answer, and what the server knows it by.
type waiting struct {
	*e2e.Pending
	child *e2e.Child
	id    string // towards the server
	next  int    // line of the server's input after it
}

// modernWaiting launches a call of the tool never and waits until the server has it. mark tells it apart.
func modernWaiting(t *testing.T, b *e2e.Bridge, child *e2e.Child, id, mark string) *waiting {
	t.Helper()
	h, body := e2e.ModernCall(id, "never", `{"mark":"`+mark+`"}`, `,"progressToken":"t"`)
	return await(t, b.Launch(t, "POST", h, body), child, mark)
}

func legacyWaiting(t *testing.T, s *e2e.Session, child *e2e.Child, id, mark string) *waiting {
	t.Helper()
	return await(t, s.Launch(t, legacyNever(id, mark)), child, mark)
}

func legacyNever(id, mark string) string {
	return string(e2e.LegacyCall(id, "never", `{"mark":"`+mark+`"}`, `,"_meta":{"progressToken":"t"}`))
}

func await(t *testing.T, p *e2e.Pending, child *e2e.Child, mark string) *waiting {
	t.Helper()
	line, next := child.Await(t, 0, `"mark":"`+mark+`"`)
	return &waiting{p, child, string(jscan.Get(line, "id")), next}
}

// answer has the server answer with a text.
func (w *waiting) answer(t *testing.T, text string) {
	t.Helper()
	more := `"content":[{"type":"text","text":"` + text + `"}]`
	w.child.Write(t, `{"jsonrpc":"2.0","id":`+w.id+`,"result":{`+more+`}}`+"\n")
}

// wantCancelled waits until the server was told, with its own id (CAN-01).
func (w *waiting) wantCancelled(t *testing.T) {
	t.Helper()
	w.child.Await(t, w.next, `"notifications/cancelled"`, `"requestId":`+w.id)
}

// wantNoCancel fails if the server was told of any cancellation.
func wantNoCancel(t *testing.T, child *e2e.Child) {
	t.Helper()
	for _, line := range child.Seen(t) {
		if bytes.Contains(line, []byte("notifications/cancelled")) {
			t.Errorf("the server was told %s", line)
		}
	}
}

// A modern client that drops the connection cancels, at once, whether the stream was open or not (HTTP-M-17, CAN-07).
func TestModernClientLeaves(t *testing.T) {
	t.Parallel()
	for _, era := range []string{"legacy", "modern"} {
		for _, open := range []string{"before", "after"} {
			t.Run(era+"/"+open+" the stream began", func(t *testing.T) {
				t.Parallel()
				b := start(t, "-era", era)
				b.Modern(t, "0", "plain", "{}")
				child := b.Hub.Child(t, 0)
				if open == "before" {
					w := modernWaiting(t, b, child, "1", "m")
					w.Drop()
					w.wantCancelled(t)
				} else {
					h, body := e2e.ModernCall("1", "never", `{"mark":"m"}`, `,"progressToken":"t"`)
					line := make(chan *waiting, 1)
					go func() {
						got, next, err := child.Find(0, `"mark":"m"`)
						w := &waiting{nil, child, string(jscan.Get(got, "id")), next}
						if err == nil {
							err = child.Say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + w.id + `,"progress":1}}` + "\n")
						}
						if err != nil {
							t.Error(err)
						}
						line <- w
					}()
					s := b.Open(t, "POST", h, body)
					e := s.Message(t)
					if e.ID != "" {
						t.Errorf("event id %q on a modern stream (HTTP-M-15)", e.ID)
					}
					s.Drop()
					(<-line).wantCancelled(t)
				}
				if r := b.Modern(t, "2", "plain", "{}"); r.Status != 200 {
					t.Errorf("the next call fails: %s", r.Body)
				}
			})
		}
	}
}

// openLegacy begins a call and opens its stream with progress. first is the id of the event that opened it, last that of
// the progress.
func openLegacy(t *testing.T, s *e2e.Session, child *e2e.Child, mark string) (st *e2e.Stream, w *waiting, first, last string) {
	t.Helper()
	begun := make(chan *waiting, 1)
	go func() {
		got, next, err := child.Find(0, `"mark":"`+mark+`"`)
		w := &waiting{nil, child, string(jscan.Get(got, "id")), next}
		if err == nil {
			err = child.Say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + w.id + `,"progress":1}}` + "\n")
		}
		if err != nil {
			t.Error(err)
		}
		begun <- w
	}()
	st = s.Open(t, legacyNever("1", mark))
	e, _ := st.Next(t)
	if !e.Bare || e.ID == "" {
		t.Errorf("the stream opens with %+v, want an event with an id and no data (HTTP-L-07)", e)
	}
	return st, <-begun, e.ID, st.Message(t).ID
}

// A legacy client that drops the connection does not cancel: the server hears nothing, the call ends, and the answer is
// there for a client that resumes (HTTP-L-16, HTTP-L-15).
func TestLegacyClientLeaves(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	child := b.Hub.Child(t, 0)
	st, w, first, last := openLegacy(t, s, child, "a")
	st.Drop()
	b.AwaitLog(t, `"stream":true`) // the bridge has seen the end
	w.answer(t, "late")
	again := s.Listen(t, last)
	if e := again.Message(t); !bytes.Contains(e.Data, []byte(`"late"`)) || string(jscan.Get(e.Data, "id")) != "1" {
		t.Errorf("resumed with %s", e.Data)
	}
	if rest := again.Rest(t); len(rest) != 0 {
		t.Errorf("after the answer comes %s", rest)
	}
	// From the opening event everything is told again, once.
	all := s.Listen(t, first).Rest(t)
	if len(all) != 2 || !bytes.Contains(all[0], []byte("progress")) || !bytes.Contains(all[1], []byte(`"late"`)) {
		t.Errorf("resumed from the beginning: %q", all)
	}

	unseen := legacyWaiting(t, s, child, "2", "b") // no event has been sent yet
	unseen.Drop()
	unseen.answer(t, "nobody")
	if r := s.Call(t, "3", "plain", "{}"); r.Status != 200 {
		t.Errorf("the next call fails: %s", r.Body)
	}
	wantNoCancel(t, child)
}

// A stream that is cut before the answer is resumed while the call still runs, and gets it live (HTTP-L-09).
func TestLegacyResumesRunningCall(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	st, w, _, last := openLegacy(t, s, b.Hub.Child(t, 0), "a")
	st.Drop()
	b.AwaitLog(t, `"stream":true`) // the bridge has seen the end
	again := s.Listen(t, last)
	if e, _ := again.Next(t); !e.Note && !e.Bare {
		t.Errorf("resumed with %+v before anything happened", e)
	}
	w.answer(t, "live")
	if e := again.Message(t); !bytes.Contains(e.Data, []byte(`"live"`)) {
		t.Errorf("resumed with %s", e.Data)
	}
}

// A client that resumes before the bridge has seen its old connection end, as behind a proxy or after a change of
// networks, takes the stream over (HTTP-L-16, case 50).
func TestLegacyResumeTakesOver(t *testing.T) {
	t.Parallel()
	b := start(t)
	s := b.NewSession(t, "2025-11-25", "{}")
	_, w, _, last := openLegacy(t, s, b.Hub.Child(t, 0), "a")
	again := s.Listen(t, last)
	again.Next(t)
	w.answer(t, "taken over")
	if e := again.Message(t); !bytes.Contains(e.Data, []byte(`"taken over"`)) {
		t.Errorf("resumed with %s", e.Data)
	}
}

// A cancellation by notification reaches the server under its own id; the client gets no answer (CAN-01, CAN-03,
// HTTP-M-07, HTTP-L-17).
func TestCancelByNotification(t *testing.T) {
	t.Parallel()
	b := startWith(t, shared)
	b.Modern(t, "0", "plain", "{}")
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77,"reason":"changed my mind"}}`
	t.Run("modern", func(t *testing.T) {
		child := b.Hub.Child(t, 0)
		one, two := modernWaiting(t, b, child, "77", "one"), modernWaiting(t, b, child, "77", "two")
		note := []byte(strings.Replace(cancel, `"params":{`, `"params":{`+env+`,`, 1))
		h := e2e.Header{"Mcp-Protocol-Version": e2e.ModernVersion}
		if r := b.Do(t, "POST", h, note); r.Status != 202 || len(r.Body) > 0 {
			t.Errorf("answered with %d %q", r.Status, r.Body)
		}
		two.answer(t, "two") // ambiguous: both go on (FRM-11)
		if r := two.Wait(t); !bytes.Contains(r.Body, []byte(`"two"`)) {
			t.Errorf("answered with %s", r.Body)
		}
		wantNoCancel(t, child)
		b.Do(t, "POST", h, note)
		one.wantCancelled(t)
		child.Await(t, one.next, `"changed my mind"`)
		if r := one.Wait(t); len(r.Messages) != 0 {
			t.Errorf("a cancelled call was answered with %s", r.Body)
		}
	})
	t.Run("legacy", func(t *testing.T) {
		one, two := b.NewSession(t, "2025-11-25", "{}"), b.NewSession(t, "2025-11-25", "{}")
		one.Call(t, "0", "plain", "{}")
		child := b.Hub.Child(t, b.Hub.Started()-1)
		first, second := legacyWaiting(t, one, child, "77", "l1"), legacyWaiting(t, two, child, "77", "l2")
		for _, ignored := range []string{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"77"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":78}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"init"}}`} {
			if r := two.Post(t, ignored); r.Status != 202 {
				t.Errorf("%s was answered with %d (CAN-04)", ignored, r.Status)
			}
		}
		wantNoCancel(t, child)
		two.Post(t, cancel)
		second.wantCancelled(t)
		if r := second.Wait(t); len(r.Messages) != 0 {
			t.Errorf("a cancelled call was answered with %s", r.Body)
		}
		first.answer(t, "still here")
		if r := first.Wait(t); !bytes.Contains(r.Body, []byte("still here")) {
			t.Errorf("the other session's call was answered with %s", r.Body)
		}
	})
}

// isError checks that an answer is one error of the bridge's own for a request (FRM-20).
func isError(t *testing.T, r *e2e.Reply, id, reason string) {
	t.Helper()
	if len(r.Messages) != 1 || r.Get(t, "id") != id || r.Get(t, "error", "code") != "-32603" || r.Get(t, "error", "data", "reason") != `"`+reason+`"` ||
		r.Get(t, "error", "data", "source") != `"bridge"` {
		t.Errorf("answered with %d %s, want one error %s for %s", r.Status, r.Body, reason, id)
	}
}

// A session that is deleted takes its running call with it: the call is cancelled at the server, or its server ended, and
// the client that waits is told (rule 3, translation 10).
func TestDeleteDuringCall(t *testing.T) {
	t.Parallel()
	t.Run("own process", func(t *testing.T) {
		t.Parallel()
		b := start(t)
		s := b.NewSession(t, "2025-11-25", "{}")
		w := legacyWaiting(t, s, b.Hub.Child(t, 0), "1", "m")
		if r := s.Delete(t); r.Status != 204 {
			t.Errorf("DELETE was answered with %d", r.Status)
		}
		isError(t, w.Wait(t), "1", "stopping")
		w.child.AwaitGone(t)
		if r := s.Call(t, "2", "plain", "{}"); r.Status != 404 {
			t.Errorf("a call after DELETE was answered with %d", r.Status)
		}
	})
	t.Run("shared process", func(t *testing.T) {
		t.Parallel()
		b := startWith(t, shared)
		s, other := b.NewSession(t, "2025-11-25", "{}"), b.NewSession(t, "2025-11-25", "{}")
		child := b.Hub.Child(t, 0)
		w, o := legacyWaiting(t, s, child, "1", "m"), legacyWaiting(t, other, child, "1", "o")
		s.Delete(t)
		w.wantCancelled(t)
		if r := w.Wait(t); len(r.Messages) > 1 {
			t.Errorf("answered with %s", r.Body)
		}
		o.answer(t, "still here")
		if r := o.Wait(t); !bytes.Contains(r.Body, []byte("still here")) {
			t.Errorf("the other session's call was answered with %s", r.Body)
		}
	})
}

// When the bridge stops, whoever still waits at the end of the drain is told (rule 3), and no process is left.
func TestStopDuringCall(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.Modern(t, "0", "plain", "{}")
	modern := modernWaiting(t, b, b.Hub.Child(t, 0), "1", "m")
	s := b.NewSession(t, "2025-11-25", "{}")
	legacy := legacyWaiting(t, s, b.Hub.Child(t, 1), `"l"`, "l")
	listen := s.Listen(t, "")
	listen.Next(t)
	b.Stopping()
	isError(t, modern.Wait(t), "1", "stopping")
	isError(t, legacy.Wait(t), `"l"`, "stopping")
	listen.Rest(t)
	modern.child.AwaitGone(t)
	legacy.child.AwaitGone(t)
}

// A server that is killed fails each of its calls exactly once, at once; the next call starts it anew, and the session
// goes on (rule 3, STD-04, design decision 7).
func TestServerKilled(t *testing.T) {
	t.Parallel()
	const calls = 20
	for _, mode := range []string{"kill", "exit", "close output"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			b := start(t)
			b.Modern(t, "0", "plain", "{}")
			s := b.NewSession(t, "2025-11-25", "{}")
			s.Call(t, "0", "plain", "{}")
			modern, legacy := b.Hub.Child(t, 0), b.Hub.Child(t, 1)
			var list []*waiting
			for i := range calls {
				mark := string(rune('a' + i))
				list = append(list, modernWaiting(t, b, modern, "1", mark), legacyWaiting(t, s, legacy, "1", mark))
			}
			for _, child := range []*e2e.Child{modern, legacy} {
				switch mode {
				case "kill":
					child.Kill(t)
				case "exit":
					child.Exit(t, 3)
				default:
					child.CloseOutput(t)
				}
			}
			for _, w := range list {
				isError(t, w.Wait(t), "1", "back_terminated")
			}
			if r := b.Modern(t, "2", "plain", "{}"); r.Status != 200 || r.Get(t, "result") == "" {
				t.Errorf("the next call fails: %d %s", r.Status, r.Body)
			}
			if r := s.Call(t, "2", "plain", "{}"); r.Status != 200 || r.Get(t, "result") == "" {
				t.Errorf("the next call of the session fails: %d %s", r.Status, r.Body)
			}
			if n := b.Hub.Started(); n != 4 {
				t.Errorf("%d processes were started, want 4", n)
			}
			// The new process has been given the handshake of the session's client.
			b.Hub.Child(t, 3).Await(t, 0, `"initialize"`)
		})
	}
}
