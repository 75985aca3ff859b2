package era_test

import (
	"testing"

	"mcpbridge/bridge/era"
)

// What a client declares, and what a link then declares for it (translation 14.3, CLF-01, CLF-09, CLF-13).
func TestProfileOf(t *testing.T) {
	for _, tt := range []struct{ caps, text, declared string }{
		{``, "", `{}`},
		{`{}`, "", `{}`},
		{`null`, "", `{}`},
		{`[{"roots":{}}]`, "", `{}`},
		{`{"experimental":{"roots":{}},"extensions":{"x/y":{}}}`, "", `{}`},
		{`{"elicitation":{}}`, "e.form", `{"elicitation":{"form":{}}}`},
		{`{"elicitation":true}`, "e.form", `{"elicitation":{"form":{}}}`},
		{`{ "elicitation" : { } }`, "e.form", `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"form":{}}}`, "e.form", `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"url":{}}}`, "e.url", `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{"url":{},"form":{"x":1}}}`, "e.form,e.url", `{"elicitation":{"form":{},"url":{}}}`},
		{`{"elicitation":{"form":false,"url":{}}}`, "e.url", `{"elicitation":{"url":{}}}`},
		{`{"elicitation":{"voice":{}}}`, "", `{}`},
		{`{"elicitation":null,"sampling":false,"roots":7}`, "", `{}`},
		{`{"sampling":{}}`, "sampling", `{"sampling":{}}`},
		{`{"sampling":{"context":{}}}`, "sampling", `{"sampling":{}}`},
		{`{"sampling":{"tools":{}}}`, "sampling,sampling.tools", `{"sampling":{"tools":{}}}`},
		{`{"sampling":{"tools":null}}`, "sampling", `{"sampling":{}}`},
		{`{"roots":{"listChanged":true}}`, "roots", `{"roots":{}}`},
		{`{"ro\u006fts":{}}`, "roots", `{"roots":{}}`},
		{`{"roots":null,"roots":{}}`, "", `{}`},
		{`{"roots":{},"sampling":{"tools":{}},"elicitation":{"form":{},"url":{}}}`, "e.form,e.url,sampling,sampling.tools,roots",
			`{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`},
	} {
		p := era.ProfileOf([]byte(tt.caps))
		if got := p.String(); got != tt.text {
			t.Errorf("%s: profile %q, want %q", tt.caps, got, tt.text)
		}
		if got := string(p.Capabilities()); got != tt.declared {
			t.Errorf("%s: declares %s, want %s", tt.caps, got, tt.declared)
		}
		if again := era.ProfileOf(p.Capabilities()); again != p {
			t.Errorf("%s: %q declares %q", tt.caps, p, again)
		}
	}
}

// A subset never has a feature the other lacks, and only a set of the same features is a subset both ways.
func TestProfileSubset(t *testing.T) {
	const all = era.ElicitForm | era.ElicitURL | era.Sampling | era.SamplingTools | era.Roots
	features := []era.Profile{era.ElicitForm, era.ElicitURL, era.Sampling, era.SamplingTools, era.Roots}
	for p := range all + 1 {
		if !p.Subset(all) || !era.Profile(0).Subset(p) || !p.Subset(p) {
			t.Errorf("%q: no subset of everything and itself, or nothing is none of it", p)
		}
		n := 0
		for _, f := range features {
			if f.Subset(p) {
				n++
				if p.Subset(all &^ f) {
					t.Errorf("%q is a subset of a set without %q", p, f)
				}
			}
		}
		if p.Len() != n {
			t.Errorf("%q has %d features, counted %d", p, n, p.Len())
		}
	}
}
