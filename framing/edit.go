package framing

// Edit replaces the bytes of a span. An insertion has Start == End, at any offset from 1 on.
type Edit struct {
	At  Span
	New []byte
}

// Op is a change of one member of an object: Value nil removes it, else it is set: replaced in place, or added at the end
// when missing. Value must be valid JSON.
type Op struct {
	Name  string
	Value []byte
}

// EditObject appends to dst the edits that carry out ops on the object at obj of raw, whose member table is members. Commas
// stay right, members that are not named keep their bytes, additions are appended in the order of ops, edits never overlap. Of
// several ops of one name the last counts. Of several members of one name, which only objects outside [Scan]'s duplicate
// check can have, a set keeps the first and removes the others, so that one value is left.
func EditObject(dst []Edit, raw []byte, obj Span, members []Member, ops ...Op) []Edit {
	w := wishes{ops, make([]bool, len(ops))}
	c := cutter{dst: dst, members: members, last: -1}
	for i := range members {
		switch value, named := w.of(raw, members[i]); {
		case !named:
			c.keep(i)
		case value == nil:
			c.remove(i)
		default:
			c.keep(i)
			c.dst = append(c.dst, Edit{members[i].Value, value})
		}
	}
	return c.finish(obj, w.additions(c.last >= 0))
}

// wishes are the ops on one object; an op that has met its member is used. (They are apart from the cutter so that neither
// slice has to live on the heap.)
type wishes struct {
	ops  []Op
	used []bool
}

// of returns the new value of a member, nil to remove it, and whether an op names it at all.
func (w *wishes) of(raw []byte, m Member) (value []byte, named bool) {
	for i := len(w.ops) - 1; i >= 0; i-- {
		if !m.Is(raw, w.ops[i].Name) {
			continue
		}
		if w.used[i] { // a second member of that name
			return nil, true
		}
		w.used[i] = true
		return w.ops[i].Value, true
	}
	return nil, false
}

// additions spells the members to add, with a comma before the first one if others precede.
func (w *wishes) additions(comma bool) []byte {
	var out []byte
	for i, op := range w.ops {
		if op.Value == nil || w.used[i] || w.overruled(i) {
			continue
		}
		if comma {
			out = append(out, ',')
		}
		out = append(AppendString(out, op.Name), ':')
		out = append(out, op.Value...)
		comma = true
	}
	return out
}

// overruled reports whether a later op has the same name.
func (w *wishes) overruled(i int) bool {
	for _, later := range w.ops[i+1:] {
		if later.Name == w.ops[i].Name {
			return true
		}
	}
	return false
}

// cutter walks the members of one object. Removed neighbours form a run that is cut as a whole: with the comma before it if
// a kept member precedes, else with the comma behind it.
type cutter struct {
	dst     []Edit
	members []Member
	last    int  // last member kept, -1 if none so far
	run     Span // run of removed members since then, absent if none
}

func (c *cutter) remove(i int) {
	if !c.run.OK() {
		if c.run.Start = c.members[i].start(); c.last >= 0 {
			c.run.Start = c.members[c.last].Value.End
		}
	}
	c.run.End = c.members[i].Value.End
}

func (c *cutter) keep(i int) {
	if c.run.OK() {
		if c.last < 0 {
			c.run.End = c.members[i].start()
		}
		c.dst = append(c.dst, Edit{At: c.run})
		c.run = Span{}
	}
	c.last = i
}

// finish cuts the last run and puts the additions in its place.
func (c *cutter) finish(obj Span, added []byte) []Edit {
	at := c.run
	switch {
	case at.OK():
	case len(added) == 0:
		return c.dst
	case c.last >= 0:
		end := c.members[c.last].Value.End
		at = Span{end, end}
	default:
		at = Span{obj.Start + 1, obj.Start + 1}
	}
	return append(c.dst, Edit{at, added})
}
