package parked

import "mcpbridge/framing"

func whole(raw []byte) framing.Span { return framing.Span{End: uint32(len(raw))} }

// member returns the raw value of a direct member of an object, nil if there is none; dup reports two of that name.
func member(obj []byte, name string) (value []byte, dup bool) {
	if !framing.IsObject(obj) {
		return nil, false
	}
	v, dup := framing.Lookup(obj, framing.Members(obj, whole(obj)), name)
	if !v.OK() {
		return nil, dup
	}
	return obj[v.Start:v.End:v.End], dup
}

func memberText(obj []byte, name string) (s string, ok bool) {
	v, dup := member(obj, name)
	if dup {
		return "", false
	}
	return framing.String(v)
}

// change returns the object with ops carried out.
func change(obj []byte, ops ...framing.Op) []byte {
	edits := framing.EditObject(nil, obj, whole(obj), framing.Members(obj, whole(obj)), ops...)
	if len(edits) == 0 {
		return obj
	}
	return framing.Rewrite(obj, edits).Bytes()
}

// elements lists the raw elements of an array, nil if it is none.
func elements(arr []byte) (list [][]byte) {
	if !framing.IsArray(arr) {
		return nil
	}
	for _, e := range framing.Elements(arr, whole(arr)) {
		list = append(list, arr[e.Start:e.End:e.End])
	}
	return list
}
