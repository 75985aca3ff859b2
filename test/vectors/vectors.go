// Package vectors hands the machine-readable specification cases to tests. It owns the embedded file vectors.json and
// the shape all groups share; what an entry's input and expectation mean is the business of the test that reads it.
// Only tests import it.
package vectors

import (
	_ "embed"
	"encoding/json"
	"sync"
	"testing"
)

//go:embed vectors.json
var file []byte

// Vector is one entry. The members every group has are decoded; those that differ by group stay raw.
type Vector struct {
	ID          string   `json:"id"`
	Group       string   `json:"group"`
	Description string   `json:"description"`
	Level       string   `json:"level"` // "spec" or "recommended"
	Refs        []string `json:"refs"`  // ledger ids

	Direction      string   `json:"direction"`
	Method         string   `json:"method"`
	Face           string   `json:"face"`
	ClientVersion  string   `json:"clientVersion"`
	BridgeSupports []string `json:"bridgeSupports"`

	Input              json.RawMessage `json:"input"`
	Expect             json.RawMessage `json:"expect"`
	Request            json.RawMessage `json:"request"`
	Steps              json.RawMessage `json:"steps"`
	Config             json.RawMessage `json:"config"`
	ServerInfo         json.RawMessage `json:"serverInfo"`
	ClientCapabilities json.RawMessage `json:"clientCapabilities"`

	Raw json.RawMessage `json:"-"` // the whole entry, for members not named above
}

// UnmarshalJSON decodes an entry and keeps its bytes in Raw.
func (v *Vector) UnmarshalJSON(b []byte) error {
	type plain Vector
	if err := json.Unmarshal(b, (*plain)(v)); err != nil {
		return err
	}
	v.Raw = append(json.RawMessage(nil), b...)
	return nil
}

type document struct {
	Fixtures json.RawMessage `json:"fixtures"`
	Vectors  []Vector        `json:"vectors"`
}

// load decodes the file once per test binary; tests only read the result.
var load = sync.OnceValues(func() (document, error) {
	var d document
	err := json.Unmarshal(file, &d)
	return d, err
})

func read(t testing.TB) document {
	t.Helper()
	d, err := load()
	if err != nil {
		t.Fatalf("cannot read vectors.json: %v", err)
	}
	return d
}

// Group returns the entries of one group in file order. It fails the test when there are none, so that a misspelt name
// cannot pass for success.
func Group(t testing.TB, name string) []Vector {
	t.Helper()
	var out []Vector
	for _, v := range read(t).Vectors {
		if v.Group == name {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		t.Fatalf("cannot find vectors of group %q in vectors.json", name)
	}
	return out
}

// Fixtures returns the servers, tools, prompts and resources the entries presuppose.
func Fixtures(t testing.TB) json.RawMessage {
	t.Helper()
	f := read(t).Fixtures
	if len(f) == 0 {
		t.Fatal("cannot find fixtures in vectors.json")
	}
	return f
}
