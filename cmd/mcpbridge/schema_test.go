package main

import (
	"os"
	"strings"
	"testing"
)

// The schema printed is the one shipped.
func TestSchemaIsTheShippedOne(t *testing.T) {
	want, err := os.ReadFile("../../config/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut strings.Builder
	if code := run([]string{"schema"}, strings.NewReader(""), &out, &errOut); code != exitOK || errOut.Len() > 0 || out.String() != string(want) {
		t.Errorf("%d, %s, %.100s", code, errOut.String(), out.String())
	}
	if code := run([]string{"schema", "x"}, strings.NewReader(""), &out, &errOut); code != exitUsage {
		t.Errorf("with an argument: %d", code)
	}
}

// Users can check the example as it is.
func TestExampleChecks(t *testing.T) {
	var out, errOut strings.Builder
	if code := run([]string{"check", "../../config/testdata/example.jsonc"}, strings.NewReader(""), &out, &errOut); code != exitOK || errOut.Len() > 0 {
		t.Errorf("%d, %s", code, errOut.String())
	}
	if !strings.Contains(out.String(), `"My Notes"`) {
		t.Error(out.String())
	}
}
