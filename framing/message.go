package framing

import "bytes"

// Kind is the shape of a JSON-RPC message.
type Kind uint8

// The kinds. Result and Error are the two kinds of response.
const (
	Invalid Kind = iota
	Request
	Notification
	Result
	Error
)

func (k Kind) String() string {
	switch k {
	case Request:
		return "request"
	case Notification:
		return "notification"
	case Result:
		return "result"
	case Error:
		return "error"
	}
	return "invalid"
}

// Inline room of the member tables: enough for ordinary messages, so that a scan costs one allocation.
const (
	inlineTop  = 6
	inlineBody = 8
	inlineMeta = 6
)

// Message is one scanned JSON-RPC message. It is never changed after [Scan] and safe for concurrent use; Raw must not
// be changed while it lives. All spans are relative to Raw.
type Message struct {
	Raw    []byte // the object, surrounding white space cut off
	Kind   Kind
	ID     Span // value of id; absent for notifications, and for an Error whose id is null or missing (FRM-12)
	Method Span // value of method, with quotes
	Params Span // value of params: an object or an array
	Result Span // value of result, of any JSON type
	Error  Span // value of error: an object with an integer code and a string message (FRM-13)
	Meta   Span // params._meta of requests and notifications, result._meta of results, if it is an object

	top, body, meta []Member // body: members of params, or of result in a response; nil if it is no object

	topRoom  [inlineTop]Member
	bodyRoom [inlineBody]Member
	metaRoom [inlineMeta]Member
}

// Bytes returns the bytes of a span of the message, nil if it is absent.
func (m *Message) Bytes(s Span) []byte {
	if !s.OK() {
		return nil
	}
	return s.of(m.Raw)
}

// MethodIs reports whether the decoded method is name. It allocates nothing.
func (m *Message) MethodIs(name string) bool {
	if !m.Method.OK() {
		return false
	}
	return literalIs(m.Raw, m.Method, name)
}

// literalIs reports whether the string literal at v decodes to want.
func literalIs(raw []byte, v Span, want string) bool {
	content := Span{v.Start + 1, v.End - 1}
	return Member{Key: content, Escaped: bytes.IndexByte(content.of(raw), '\\') >= 0}.Is(raw, want)
}

// MethodName returns the decoded method, "" for a response.
func (m *Message) MethodName() string {
	s, _ := String(m.Bytes(m.Method))
	return s
}

// Param returns the value of a direct member of params of a request or notification.
func (m *Message) Param(name string) Span { return find(m.Raw, m.ParamMembers(), name) }

// ResultMember returns the value of a direct member of result.
func (m *Message) ResultMember(name string) Span { return find(m.Raw, m.ResultMembers(), name) }

// MetaMember returns the value of a direct member of [Message.Meta].
func (m *Message) MetaMember(name string) Span { return find(m.Raw, m.meta, name) }

// TopMembers returns the top-level members in order. The caller must not change the tables this and the next methods
// return.
func (m *Message) TopMembers() []Member { return m.top }

// ParamMembers returns the direct members of params in order, nil if params is no object or the message a response.
func (m *Message) ParamMembers() []Member {
	if m.Method.OK() {
		return m.body
	}
	return nil
}

// ResultMembers returns the direct members of result in order, nil if result is no object.
func (m *Message) ResultMembers() []Member {
	if m.Method.OK() {
		return nil
	}
	return m.body
}

// MetaMembers returns the direct members of [Message.Meta] in order, nil if there is none.
func (m *Message) MetaMembers() []Member { return m.meta }

func find(raw []byte, members []Member, name string) Span {
	for i := range members {
		if members[i].Is(raw, name) {
			return members[i].Value
		}
	}
	return Span{}
}
