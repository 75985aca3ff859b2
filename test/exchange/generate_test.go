package exchange

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// gen writes JSON texts that a bridge which decodes and encodes again would change.
type gen struct {
	*rand.Rand
	breaks bool // line ends between tokens: fit for a request body, not for a line of a pipe
	keys   int
}

func newGen(seed uint64, breaks bool) *gen {
	return &gen{Rand: rand.New(rand.NewPCG(seed, 1)), breaks: breaks}
}

func (g *gen) pick(list ...string) string { return list[g.IntN(len(list))] }

// ws is white space between tokens.
func (g *gen) ws() string {
	if g.IntN(3) > 0 {
		return ""
	}
	if g.breaks {
		return g.pick(" ", "\n", "\t", "\r", "  ", "\n\n ")
	}
	return g.pick(" ", "\t", "\r", "  ", " \t")
}

// scalar is a value without structure, in a spelling of its own.
func (g *gen) scalar() string {
	switch g.IntN(8) {
	case 0:
		return g.pick("0", "-0", "1.10", "1e400", "-1E+2", "0.1e-7", "12345678901234567890", "9007199254740993", "-9223372036854775808", "1.0")
	case 1:
		return g.pick("null", "true", "false", `""`, "{}", "[]")
	}
	return g.text(g.IntN(12))
}

// text is a string of n pieces.
func (g *gen) text(n int) string {
	var b strings.Builder
	b.WriteByte('"')
	for range n {
		switch g.IntN(6) {
		case 0:
			b.WriteString(g.pick(`\u0041`, `\/`, `\ud83d\ude00`, `\u0000`, `\"`, `\\`, `\n`, `\t`, `\u2028`, `\uFEFF`, `\b\f\r`))
		case 1:
			b.WriteString(g.pick("读", "🎉", "—", "\u2028", "\u007f", "\ufeff", "é", "e\u0301", "\ufffd"))
		default:
			b.WriteString(g.pick("a", "xyz", " ", "<&>", "'", "data: ", "id", "%s", "=?base64?QQ==?="))
		}
	}
	b.WriteByte('"')
	return b.String()
}

// value is any value, at most so deep.
func (g *gen) value(depth int) string {
	if depth <= 0 {
		return g.scalar()
	}
	switch g.IntN(4) {
	case 0:
		return g.object(depth)
	case 1:
		return g.list("[", "]", func() string { return g.value(depth - 1) })
	}
	return g.scalar()
}

// object may hold a name twice: nobody but the server reads it.
func (g *gen) object(depth int) string {
	return g.list("{", "}", func() string {
		name := g.pick(`"a"`, `"A"`, `"\u0061"`, `"id"`, `"method"`, `"_meta"`, `"jsonrpc"`, `"progressToken"`, `""`, g.text(2))
		return name + g.ws() + ":" + g.ws() + g.value(depth-1)
	})
}

func (g *gen) list(open, end string, item func() string) string {
	var b strings.Builder
	b.WriteString(open + g.ws())
	for i := range g.IntN(5) {
		if i > 0 {
			b.WriteString("," + g.ws())
		}
		b.WriteString(item() + g.ws())
	}
	b.WriteString(end)
	return b.String()
}

// deep is a value nested n times.
func (g *gen) deep(n int) string {
	var b strings.Builder
	open := make([]byte, n)
	for i := range open {
		open[i] = "[{"[g.IntN(2)]
		b.WriteByte(open[i])
		if open[i] == '{' {
			b.WriteString(g.ws() + `"k":`)
		}
	}
	b.WriteString(g.scalar())
	for i := n - 1; i >= 0; i-- {
		b.WriteByte(open[i] + 2) // the closing one
	}
	return b.String()
}

// sized is an object of at least n bytes.
func (g *gen) sized(n int) string {
	var b strings.Builder
	b.WriteString(`{"pad":` + g.value(3))
	for b.Len() < n {
		item := g.ws() + `,"` + fmt.Sprint(b.Len()) + `":` + g.value(4)
		if g.IntN(20) == 0 {
			item += `,"long":"` + strings.Repeat(g.pick("x", "读", `\\`, `\u00e9`), min(n, 1+g.IntN(8192))) + `"`
		}
		b.WriteString(item)
	}
	b.WriteString(g.ws() + "}")
	return b.String()
}

// extra is a member nobody knows, of a name used once.
func (g *gen) extra() string {
	g.keys++
	return fmt.Sprintf(`"x%d%s`, g.keys, g.text(1)[1:]) + g.ws() + ":" + g.ws() + g.value(3)
}

// join puts members in any order between braces.
func (g *gen) join(members ...string) string {
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	for i := range members {
		members[i] = g.ws() + members[i] + g.ws()
	}
	return "{" + strings.Join(members, ",") + "}"
}

// node is a JSON value in which every spelling is kept; white space is not.
type node struct {
	raw  string // of a scalar
	open byte   // '{' or '[' of a container
	keys []string
	kids []*node
}

// parseNode reads a text that is known to be valid JSON.
func parseNode(text string) *node {
	p := nodeParser{text: text}
	return p.value()
}

type nodeParser struct {
	text string
	at   int
}

func (p *nodeParser) skip() byte {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *nodeParser) value() *node {
	switch c := p.skip(); c {
	case '{', '[':
		return p.container(c)
	case '"':
		return &node{raw: p.quoted()}
	}
	from := p.at
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n,]}", p.text[p.at]) < 0 {
		p.at++
	}
	return &node{raw: p.text[from:p.at]}
}

func (p *nodeParser) container(open byte) *node {
	n := &node{open: open}
	p.at++
	for {
		switch c := p.skip(); c {
		case ',':
			p.at++
		case '}', ']', 0:
			p.at++
			return n
		default:
			if open == '{' {
				n.keys = append(n.keys, p.quoted())
				p.skip()
				p.at++ // the colon
			}
			n.kids = append(n.kids, p.value())
		}
	}
}

func (p *nodeParser) quoted() string {
	from := p.at
	for p.at++; p.text[p.at] != '"'; p.at++ {
		if p.text[p.at] == '\\' {
			p.at++
		}
	}
	p.at++
	return p.text[from:p.at]
}

// member returns the member of an object, nil if there is none.
func (n *node) member(name string) *node {
	for i, k := range n.keys {
		if k == `"`+name+`"` {
			return n.kids[i]
		}
	}
	return nil
}

// drop takes members off an object.
func (n *node) drop(names ...string) {
	if n == nil {
		return
	}
	for _, name := range names {
		for i, k := range n.keys {
			if k == `"`+name+`"` {
				n.keys = append(n.keys[:i:i], n.keys[i+1:]...)
				n.kids = append(n.kids[:i:i], n.kids[i+1:]...)
				break
			}
		}
	}
}

func (n *node) String() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	if n.open == 0 {
		b.WriteString(n.raw)
		return
	}
	b.WriteByte(n.open)
	for i, kid := range n.kids {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.open == '{' {
			b.WriteString(n.keys[i] + ":")
		}
		kid.write(b)
	}
	b.WriteByte(n.open + 2)
}

// flat puts spaces where line ends were, as a message must be on one line of a pipe or an event (FRM-04).
func flat(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, strings.TrimSpace(s))
}

// difference shows the first place where two texts differ.
func difference(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	from := max(0, i-60)
	for from > 0 && !utf8.RuneStart(want[from]) {
		from--
	}
	cut := func(s string) string { return s[min(from, len(s)):min(i+60, len(s))] }
	return fmt.Sprintf("at byte %d of %d, want %d:\nwant ...%q\n got ...%q", i, len(got), len(want), cut(want), cut(got))
}
