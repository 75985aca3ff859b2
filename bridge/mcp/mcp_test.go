package mcp_test

import (
	"testing"

	"mcpbridge/bridge/mcp"
)

func TestVersions(t *testing.T) { // VER-41, VER-43, DSC-07
	for _, tt := range []struct {
		v      mcp.Version
		era    mcp.Era
		answer mcp.Version
	}{
		{"2024-11-05", mcp.Legacy, "2024-11-05"},
		{"2025-03-26", mcp.Legacy, "2025-03-26"},
		{"2025-06-18", mcp.Legacy, "2025-06-18"},
		{"2025-11-25", mcp.Legacy, "2025-11-25"},
		{"2026-07-28", mcp.Modern, "2025-11-25"},
		{"2025-11-26", mcp.EraUnknown, "2025-11-25"},
		{"1999-01-01", mcp.EraUnknown, "2025-11-25"},
		{"", mcp.EraUnknown, "2025-11-25"},
	} {
		if tt.v.Era() != tt.era || tt.v.Known() != (tt.era != mcp.EraUnknown) {
			t.Errorf("%q: era %v, known %v; want %v", tt.v, tt.v.Era(), tt.v.Known(), tt.era)
		}
		if got := mcp.NegotiateLegacy(string(tt.v)); got != tt.answer {
			t.Errorf("NegotiateLegacy(%q) = %s, want %s", tt.v, got, tt.answer)
		}
	}
}

func TestFeaturesBegin(t *testing.T) { // translation 13.1, 13.5
	all := append(mcp.LegacyVersions(), mcp.ModernVersions()...)
	for name, f := range map[string]struct {
		has  func(mcp.Version) bool
		want string // one letter for each version, oldest first
	}{
		"batches":    {mcp.Version.Batches, "-x---"},
		"priming":    {mcp.Version.Priming, "---x-"},
		"audio":      {mcp.Version.Audio, "-xxxx"},
		"links":      {mcp.Version.ResourceLinks, "--xxx"},
		"structured": {mcp.Version.StructuredContent, "--xxx"},
		"url":        {mcp.Version.URLElicitation, "---x-"},
	} {
		for i, v := range all {
			if got := f.has(v); got != (f.want[i] == 'x') {
				t.Errorf("%s at %s: %v", name, v, got)
			}
		}
	}
}

func TestListsAreCopies(t *testing.T) {
	mcp.LegacyVersions()[0], mcp.ModernVersions()[0] = "x", "y"
	if mcp.LegacyVersions()[0] != mcp.V20241105 || mcp.ModernVersions()[0] != mcp.V20260728 {
		t.Error("a caller can change the versions served")
	}
}

func TestReservedCodes(t *testing.T) { // FRM-18, each edge
	for code, want := range map[int]bool{-32100: false, -32099: true, -32042: true, -32020: true, -32019: false, -32002: false, -32603: false} {
		if mcp.ReservedCode(code) != want {
			t.Errorf("ReservedCode(%d) = %v", code, !want)
		}
	}
}

func TestLevels(t *testing.T) { // LOG-03, LOG-08
	last := mcp.NoLevel
	for _, name := range []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"} {
		l := mcp.ParseLevel(name)
		if l <= last || l.String() != name {
			t.Errorf("%s: %d after %d, spelt %s", name, l, last, l)
		}
		last = l
	}
	for _, bad := range []string{"", "INFO", "warn", "none"} {
		if mcp.ParseLevel(bad) != mcp.NoLevel {
			t.Errorf("%q is a level", bad)
		}
	}
}

func TestTraits(t *testing.T) { // MRT-01, CCH-01, HTTP-M-26, STD-06
	for method, want := range map[string]mcp.Traits{
		"initialize":     {Only: mcp.Legacy},
		"tools/call":     {MayAsk: true, NameParam: "name", Capability: "tools"},
		"resources/read": {Cacheable: true, MayAsk: true, Repeatable: true, NameParam: "uri", Capability: "resources"},
		"tools/list":     {Cacheable: true, Repeatable: true, Capability: "tools"},
		"vendor/method":  {},
	} {
		if got := mcp.TraitsOf(method); got != want {
			t.Errorf("%s: %+v, want %+v", method, got, want)
		}
	}
}
