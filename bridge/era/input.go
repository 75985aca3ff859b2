package era

import (
	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// InputRequest is one question of a modern server to the client of a call (MRT-02).
type InputRequest struct {
	Key    []byte // raw JSON string
	Method string
	Params []byte // raw object, nil if there is none
}

// Input is what a modern server wants before it goes on with a call (MRT-04).
type Input struct {
	Requests []InputRequest
	State    []byte // raw JSON string, nil if there is none: it is sent back byte for byte, or not at all (MRT-05, MRT-12)
}

// IsInput reports whether a result is no outcome but asks for input.
func IsInput(m *framing.Message) bool {
	if m.Kind != framing.Result {
		return false
	}
	kind, ok := framing.String(m.Bytes(m.ResultMember("resultType")))
	return ok && kind == mcp.ResultInputRequired
}

// ReadInput reads what a result for which IsInput holds asks, or gives a *ProtocolError: it asks nothing (MRT-04), a question has no
// method or params that are no object (MRT-02), or needs what was not declared (MRT-09). declared is what the request said
// the client can be asked. Names stand for one question each: of two with one name the message is refused.
func ReadInput(m *framing.Message, method string, declared Profile) (*Input, error) {
	r := Result{From: mcp.Modern, To: mcp.Modern, Method: method, MayAsk: true}
	f := fieldsOf(m)
	if err := r.checkAsk(m, &f); err != nil {
		return nil, err
	}
	in := &Input{State: stringOr(m.Bytes(f.requestState))}
	if !isObject(m.Raw, f.inputRequests) {
		return in, nil
	}
	members := framing.Members(m.Raw, f.inputRequests)
	for _, q := range members {
		name := string(nameOf(m.Raw, q))
		if _, dup := framing.Lookup(m.Raw, members, name); dup {
			return nil, r.invalid("inputRequests has a key twice")
		}
		value := m.Raw[q.Value.Start:q.Value.End:q.Value.End]
		kind, ok := framing.String(member(value, "method"))
		params := member(value, "params")
		switch {
		case !ok:
			return nil, r.invalid("an input request has no method")
		case params != nil && !framing.IsObject(params):
			return nil, r.invalid("the params of an input request are no object")
		}
		one := InputRequest{Key: quote(name), Method: kind, Params: params}
		if needs, known := one.needs(); !known {
			return nil, r.invalid("an input request has a method nobody can answer")
		} else if !needs.Subset(declared) {
			return nil, r.invalid("an input request needs " + (needs &^ declared).String() + ", which the request did not declare")
		}
		in.Requests = append(in.Requests, one)
	}
	return in, nil
}

// needs is what a client must have declared to be asked.
func (q InputRequest) needs() (p Profile, known bool) {
	switch q.Method {
	case mcp.ElicitationCreate:
		if q.url() {
			return ElicitURL, true
		}
		return ElicitForm, true
	case mcp.SamplingCreateMessage:
		if member(q.Params, "tools") != nil || member(q.Params, "toolChoice") != nil {
			return Sampling | SamplingTools, true
		}
		return Sampling, true
	case mcp.RootsList:
		return Roots, true
	}
	return 0, false
}

func (q InputRequest) url() bool {
	mode, _ := framing.String(member(q.Params, "mode"))
	return mode == "url"
}

// ForLegacy returns the params of the question as a client of revision v takes them, nil for none (translation 6.3, 13.3). ok is
// false if that revision cannot express it. elicitationID is a raw JSON string for a question by URL, which has to have one
// there (CLF-03).
func (q InputRequest) ForLegacy(v mcp.Version, elicitationID []byte) (params []byte, ok bool) {
	switch {
	case q.Method == mcp.ElicitationCreate && q.url():
		return change(q.Params, framing.Op{Name: "elicitationId", Value: elicitationID}), v.URLElicitation()
	case v.AtLeast(mcp.V20251125):
		return q.Params, true
	case q.Method == mcp.ElicitationCreate:
		return olderForm(without(q.Params, "mode"))
	case q.Method == mcp.SamplingCreateMessage:
		return olderMessages(q.Params), true
	}
	return q.Params, true
}

// olderForm gives a form the shape of 2025-06-18: choices with titles are written as enum and enumNames. A choice of several
// values does not exist there.
func olderForm(params []byte) (_ []byte, ok bool) {
	schema := member(params, "requestedSchema")
	properties := member(schema, "properties")
	if !framing.IsObject(properties) {
		return params, true
	}
	var ops []framing.Op
	for _, p := range framing.Members(properties, whole(properties)) {
		field := properties[p.Value.Start:p.Value.End]
		if kind, _ := framing.String(member(field, "type")); kind == "array" {
			return nil, false
		}
		if choices := member(field, "oneOf"); framing.IsArray(choices) {
			values, titles := choiceLists(choices)
			ops = append(ops, framing.Op{Name: string(nameOf(properties, p)), Value: change(field,
				framing.Op{Name: "oneOf"}, framing.Op{Name: "enum", Value: values}, framing.Op{Name: "enumNames", Value: titles})})
		}
	}
	if len(ops) == 0 {
		return params, true
	}
	return change(params, framing.Op{Name: "requestedSchema", Value: change(schema, framing.Op{Name: "properties", Value: change(properties, ops...)})}), true
}

// choiceLists splits titled choices into their values and their titles.
func choiceLists(choices []byte) (values, titles []byte) {
	for _, e := range framing.Elements(choices, whole(choices)) {
		choice := choices[e.Start:e.End]
		value := member(choice, "const")
		if value == nil {
			continue
		}
		title := member(choice, "title")
		if title == nil {
			title = value
		}
		values, titles = append(append(values, ','), value...), append(append(titles, ','), title...)
	}
	return listOf(values), listOf(titles)
}

// listOf makes an array of elements that each follow a comma.
func listOf(elements []byte) []byte {
	if len(elements) == 0 {
		return []byte("[]")
	}
	return append(append([]byte{'['}, elements[1:]...), ']')
}

// olderMessages gives the messages of a sampling request the shape from before 2025-11-25, where each has one content block: one
// stands alone, texts are joined, others become messages of the same role.
func olderMessages(params []byte) []byte {
	messages := member(params, "messages")
	if !framing.IsArray(messages) {
		return params
	}
	var list []byte
	changed := false
	for _, e := range framing.Elements(messages, whole(messages)) {
		message := messages[e.Start:e.End]
		blocks := member(message, "content")
		if !framing.IsArray(blocks) {
			list = append(append(list, ','), message...)
			continue
		}
		changed = true
		for _, block := range single(blocks) {
			list = append(append(list, ','), change(message, framing.Op{Name: "content", Value: block})...)
		}
	}
	if !changed {
		return params
	}
	return change(params, framing.Op{Name: "messages", Value: listOf(list)})
}

// single returns the blocks of an array as so many messages need them: texts only as one block, others each by itself.
func single(blocks []byte) (list [][]byte) {
	text := ""
	for i, e := range framing.Elements(blocks, whole(blocks)) {
		block := blocks[e.Start:e.End]
		list = append(list, block)
		t, isText := framing.String(member(block, "text"))
		if kind, _ := framing.String(member(block, "type")); kind != "text" || !isText {
			text = ""
			for _, rest := range framing.Elements(blocks, whole(blocks))[i+1:] {
				list = append(list, blocks[rest.Start:rest.End])
			}
			return list
		}
		if i > 0 {
			text += "\n"
		}
		text += t
	}
	if len(list) < 2 {
		return list
	}
	return [][]byte{appendText(nil, text)}
}

// ReadAnswer turns the legacy client's answer to a question into an input response. refused tells why there is none, "" if there is
// one: an error or a malformed answer to an elicitation counts as cancelled, since nobody chose anything; the other kinds have
// no form for a refusal (MRT-20, translation 6.4).
func (q InputRequest) ReadAnswer(m *framing.Message) (response []byte, refused string) {
	result := own(m.Bytes(m.Result))
	if m.Kind == framing.Result && q.fits(result) {
		return withoutRelatedTask(result), ""
	}
	return q.Unanswered(refusal(m))
}

// Unanswered is ReadAnswer for a question that gets no answer, with the reason.
func (q InputRequest) Unanswered(reason string) (response []byte, refused string) {
	if q.Method == mcp.ElicitationCreate {
		return []byte(`{"action":"cancel"}`), ""
	}
	what := "the roots"
	if q.Method == mcp.SamplingCreateMessage {
		what = "a model answer"
	}
	return nil, "The server needs " + what + " of the client, which it did not get: " + reason
}

// maxRefusal is how many bytes of a client's own words go into the reason.
const maxRefusal = 1024

func refusal(m *framing.Message) string {
	if m.Kind != framing.Error {
		return "the answer is malformed"
	}
	if text, ok := framing.String(member(m.Bytes(m.Error), "message")); ok && text != "" {
		if len(text) > maxRefusal {
			text = cut(text, maxRefusal)
		}
		return text
	}
	return "the request was refused"
}

// fits checks the shape of an answer for its kind.
func (q InputRequest) fits(result []byte) bool {
	if !framing.IsObject(result) {
		return false
	}
	switch q.Method {
	case mcp.ElicitationCreate:
		action, _ := framing.String(member(result, "action"))
		return action == "decline" || action == "cancel" || action == "accept" && (q.url() || framing.IsObject(member(result, "content")))
	case mcp.SamplingCreateMessage:
		return framing.IsString(member(result, "role")) && member(result, "content") != nil && framing.IsString(member(result, "model"))
	}
	return framing.IsArray(member(result, "roots"))
}

func withoutRelatedTask(result []byte) []byte {
	meta := member(result, "_meta")
	if member(meta, mcp.MetaRelatedTask) == nil {
		return result
	}
	if meta = without(meta, mcp.MetaRelatedTask); isEmpty(meta) {
		meta = nil
	}
	return change(result, framing.Op{Name: "_meta", Value: meta})
}

// AtRevision takes out of what a legacy client declared the features that the negotiated revision does not have: elicitation came
// with 2025-06-18, its URLs and tools in sampling with 2025-11-25 (translation 13.1). Newer clients declare them before they
// know the revision.
func AtRevision(caps []byte, v mcp.Version) []byte {
	if v.AtLeast(mcp.V20251125) || !framing.IsObject(caps) {
		return caps
	}
	var ops []framing.Op
	narrow := func(name, feature string) {
		if have := member(caps, name); framing.IsObject(have) && member(have, feature) != nil {
			ops = append(ops, framing.Op{Name: name, Value: without(have, feature)})
		}
	}
	narrow("sampling", "tools")
	if v.AtLeast(mcp.V20250618) {
		narrow("elicitation", "url")
	} else {
		ops = append(ops, framing.Op{Name: "elicitation"})
	}
	return change(caps, ops...)
}
