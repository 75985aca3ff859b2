// Package mcp is the vocabulary of the Model Context Protocol: revisions and eras, method names and their traits,
// _meta keys, header names, error codes and log levels. It holds words and the facts about them, no behaviour: it
// knows nothing of messages, transports or processes.
package mcp

import "slices"

// Era tells the two families of protocol revisions apart.
type Era uint8

const (
	// EraUnknown is the zero value: nothing has been established yet.
	EraUnknown Era = iota
	// Legacy revisions (2024-11-05 .. 2025-11-25) open with an initialize handshake.
	Legacy
	// Modern revisions (2026-07-28 and later) carry everything in each request.
	Modern
)

func (e Era) String() string {
	switch e {
	case Legacy:
		return "legacy"
	case Modern:
		return "modern"
	}
	return "unknown"
}

// Version is a protocol revision as it is spelt on the wire. Revisions are dates, so their order is that of strings.
type Version string

// The revisions the bridge speaks.
const (
	V20241105 Version = "2024-11-05"
	V20250326 Version = "2025-03-26"
	V20250618 Version = "2025-06-18"
	V20251125 Version = "2025-11-25"
	V20260728 Version = "2026-07-28"
)

var (
	legacyVersions = []Version{V20241105, V20250326, V20250618, V20251125}
	modernVersions = []Version{V20260728}
)

// LegacyVersions returns the legacy revisions served, oldest first.
func LegacyVersions() []Version { return slices.Clone(legacyVersions) }

// ModernVersions returns the modern revisions served, oldest first. Discovery and -32022 list exactly these (DSC-07).
func ModernVersions() []Version { return slices.Clone(modernVersions) }

// LatestLegacy is what the bridge offers in a handshake of its own (VER-40).
const LatestLegacy = V20251125

// LatestModern is the revision the bridge prefers in requests of its own.
const LatestModern = V20260728

// Era returns the era of a revision the bridge speaks, EraUnknown for any other string.
func (v Version) Era() Era {
	switch {
	case slices.Contains(legacyVersions, v):
		return Legacy
	case slices.Contains(modernVersions, v):
		return Modern
	}
	return EraUnknown
}

// Known reports whether the bridge speaks this revision.
func (v Version) Known() bool { return v.Era() != EraUnknown }

// AtLeast reports whether v is the revision o or a later one.
func (v Version) AtLeast(o Version) bool { return v >= o }

// Batches reports whether JSON-RPC arrays are part of the revision (FRM-23, FRM-24): 2025-03-26 only.
func (v Version) Batches() bool { return v == V20250326 }

// Priming reports whether a POST stream opens with an event that has an id and no data (HTTP-L-07).
func (v Version) Priming() bool { return v == V20251125 }

// Audio reports whether clients of the revision know audio content (FEA-13).
func (v Version) Audio() bool { return v.AtLeast(V20250326) }

// ResourceLinks reports whether clients of the revision know resource_link content (FEA-13).
func (v Version) ResourceLinks() bool { return v.AtLeast(V20250618) }

// StructuredContent reports whether clients of the revision read structuredContent and outputSchema.
func (v Version) StructuredContent() bool { return v.AtLeast(V20250618) }

// URLElicitation reports whether the legacy revision has url elicitation and error -32042 (CLF-05).
func (v Version) URLElicitation() bool { return v == V20251125 }

// NegotiateLegacy answers the version asked for in an initialize request that the bridge itself answers: the same one
// if it is a legacy revision the bridge speaks, else the latest legacy one; never a modern one (VER-41, VER-43).
func NegotiateLegacy(requested string) Version {
	if v := Version(requested); v.Era() == Legacy {
		return v
	}
	return LatestLegacy
}
