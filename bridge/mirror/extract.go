package mirror

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"mcpbridge/framing"
)

// ErrTwice refuses a name on the path to a mirrored argument that is given twice (FRM-34).
var ErrTwice = errors.New("a name is given twice")

// Extract returns the raw value at a path of property names below the raw arguments object, nil when there is none: a
// name is missing, or something on the way is no object (XMH-14). A name on the path that is given twice is an error
// wrapping ErrTwice, never a choice (FRM-34).
func Extract(args []byte, path []string) ([]byte, error) {
	values, err := locate([]Param{{Path: path}}, args)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// Each reads the values of all params in one pass over the raw arguments object and hands them to visit in the order
// of params, nil for an absent one. It stops at the first error of visit; a name given twice is an error wrapping
// ErrTwice, as in Extract.
func Each(params []Param, args []byte, visit func(p *Param, value []byte) error) error {
	values, err := locate(params, args)
	if err != nil {
		return err
	}
	for i := range params {
		if err := visit(&params[i], values[i]); err != nil {
			return err
		}
	}
	return nil
}

// twice is the error of a name given twice on the path of a parameter.
type twice struct{ param *Param }

func (e *twice) Error() string {
	return fmt.Sprintf("cannot read argument %.200q: %v", e.param.Path, ErrTwice)
}

func (e *twice) Unwrap() error { return ErrTwice }

// locate returns the values of params in args.
func locate(params []Param, args []byte) ([][]byte, error) {
	l := locator{params: params, cursor: cursor{raw: args}, values: make([][]byte, len(params)), seen: make([]int, len(params))}
	l.order = make([]int, 0, len(params))
	for i := range params {
		if len(params[i].Path) > 0 {
			l.order = append(l.order, i)
		}
	}
	slices.SortFunc(l.order, func(a, b int) int { return slices.Compare(params[a].Path, params[b].Path) })
	if l.space(); l.peek() != '{' || len(l.order) == 0 {
		return l.values, nil
	}
	return l.values, l.object(0, len(l.order), 0)
}

// locator finds many paths in one pass: order holds the params sorted by path, so those that share a prefix are
// neighbours.
type locator struct {
	cursor
	params []Param
	order  []int
	values [][]byte
	seen   []int // names of each path met so far
}

// object reads the object at the cursor, which lies depth names below arguments on the paths of order[lo:hi].
func (l *locator) object(lo, hi, depth int) error {
	for lo < hi && len(l.path(lo)) == depth {
		lo++
	}
	l.pos++
	for key, escaped, ok := l.member(); ok; key, escaped, ok = l.member() {
		from, to := l.match(lo, hi, depth, key, escaped)
		if from == to {
			l.skip()
			continue
		}
		if err := l.value(from, to, depth); err != nil {
			return err
		}
	}
	return nil
}

// match returns the part of order[lo:hi] whose path has the key at depth.
func (l *locator) match(lo, hi, depth int, key framing.Span, escaped bool) (from, to int) {
	name := cut(l.raw, key)
	if escaped {
		name = []byte(keyText(l.raw, key, true))
	}
	from = lo + sort.Search(hi-lo, func(i int) bool { return l.path(lo + i)[depth] >= string(name) })
	for to = from; to < hi && l.path(to)[depth] == string(name); to++ {
	}
	return from, to
}

// value reads the value at the cursor, which order[from:to] share as their name number depth.
func (l *locator) value(from, to, depth int) error {
	for i := from; i < to; i++ {
		if p := l.order[i]; l.seen[p] > depth {
			return &twice{&l.params[p]}
		}
		l.seen[l.order[i]] = depth + 1
	}
	start := l.pos
	if l.peek() == '{' && len(l.path(to-1)) > depth+1 {
		if err := l.object(from, to, depth+1); err != nil {
			return err
		}
	} else {
		l.skip()
	}
	for i := from; i < to && len(l.path(i)) == depth+1; i++ {
		l.values[l.order[i]] = l.raw[start:min(l.pos, len(l.raw))]
	}
	return nil
}

func (l *locator) path(i int) []string { return l.params[l.order[i]].Path }
