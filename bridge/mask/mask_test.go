package mask_test

import (
	"testing"

	"mcpbridge/bridge/mask"
)

// SEC-09: whole secrets, the lines of those of several lines, the longest first; what is too short to be a secret stays.
func TestText(t *testing.T) {
	m := mask.New([]string{"hunter", "hunter22", "short", "line one\n  line two\n", "123456", "12345"})
	for text, want := range map[string]string{
		"a hunter b":             "a *** b",
		"hunter22":               "***",
		"short and 12345":        "short and 12345",
		"123456!":                "***!",
		"got line two, line one": "got ***, ***",
		"nothing":                "nothing",
	} {
		if got := m.Text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	if got := (mask.Masker{}).Text("hunter22"); got != "hunter22" {
		t.Errorf("the zero value hides: %q", got)
	}
}
