package era

import (
	"slices"
	"strconv"

	"mcpbridge/bridge/mcp"
	"mcpbridge/framing"
)

// Verdict is what an answer to the era probe says about a server.
type Verdict uint8

const (
	// VerdictNone: the message is no answer; keep waiting (VER-25).
	VerdictNone Verdict = iota
	// VerdictModern: a discovery result with a mutual version, in Probe.Version (VER-21).
	VerdictModern
	// VerdictRefused: the server is modern and refused the probe for a reason of its own; show it (VER-22, VER-32).
	VerdictRefused
	// VerdictRetry: the server is modern and named a mutual version; repeat the probe with it once (VER-02).
	VerdictRetry
	// VerdictLegacy: open with initialize at Probe.Version (VER-09, VER-11, VER-12, VER-13).
	VerdictLegacy
	// VerdictIncompatible: no version in common, or the same one refused twice; an error, never a handshake (VER-08).
	VerdictIncompatible
)

func (v Verdict) String() string {
	names := [...]string{"none", "modern", "refused", "retry", "legacy", "incompatible"}
	if int(v) < len(names) {
		return names[v]
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// Era is the era the verdict stands for, EraUnknown if none.
func (v Verdict) Era() mcp.Era {
	switch v {
	case VerdictModern, VerdictRefused, VerdictRetry:
		return mcp.Modern
	case VerdictLegacy:
		return mcp.Legacy
	}
	return mcp.EraUnknown
}

// Probe is a classified answer to server/discover.
type Probe struct {
	Verdict   Verdict
	Version   mcp.Version // to use next: modern for modern verdicts, to offer in initialize for VerdictLegacy
	Discovery *Discovery  // VerdictModern only
	Reason    string      // why, for people
	Listed    []string    // the versions the server named
}

// ClassifyProbe reads an answer to the era probe, a result or an error; the caller has matched its id, or found none
// with only this request open (VER-25). supported are the modern versions the bridge speaks, in any order.
func ClassifyProbe(m *framing.Message, supported []mcp.Version) Probe {
	switch m.Kind {
	case framing.Result:
		return classifyResult(m, supported)
	case framing.Error:
		return classifyError(m, supported)
	}
	return Probe{}
}

// AfterRetry is the verdict when this answer came to the one repetition of the probe: a second refusal ends it (VER-02).
func (p Probe) AfterRetry() Probe {
	if p.Verdict == VerdictRetry {
		p.Verdict, p.Version, p.Reason = VerdictIncompatible, "", "version refused twice"+listed(p.Listed)
	}
	return p
}

func classifyResult(m *framing.Message, supported []mcp.Version) Probe {
	d, err := ParseDiscover(m)
	if err != nil {
		return Probe{Verdict: VerdictLegacy, Version: mcp.LatestLegacy, Reason: err.Error()}
	}
	p := choose(d.SupportedVersions, supported)
	if p.Verdict == VerdictModern {
		p.Discovery = &d
	}
	return p
}

// classifyError recognises the three modern codes; whatever else means legacy (VER-09, VER-10).
func classifyError(m *framing.Message, supported []mcp.Version) Probe {
	o := newErrorView(m)
	legacy := Probe{Verdict: VerdictLegacy, Version: mcp.LatestLegacy, Reason: "the probe was answered with error " + string(o.rawCode)}
	if !o.plain {
		return legacy
	}
	switch o.code {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingRequiredCapability:
		return Probe{Verdict: VerdictRefused, Version: newest(supported), Reason: "the server refused the probe: " + o.message}
	case mcp.CodeUnsupportedProtocolVersion:
		list, ok := stringList(member(o.data, "supported"))
		if !ok || len(list) == 0 {
			return legacy
		}
		p := choose(list, supported)
		if p.Verdict == VerdictModern {
			p.Verdict, p.Reason = VerdictRetry, "the server refused the version and named another"+listed(list)
		}
		return p
	}
	return legacy
}

// choose picks from the versions a server lists: the newest mutual modern one, else a handshake with the newest legacy
// one (VER-11, VER-12). A list that holds nothing but older unknown revisions leaves the choice to the handshake.
func choose(list []string, supported []mcp.Version) Probe {
	var modern, legacy mcp.Version
	var older bool
	for _, s := range list {
		v := mcp.Version(s)
		switch {
		case slices.Contains(supported, v) && v.Era() != mcp.Legacy:
			modern = max(modern, v)
		case v.Era() == mcp.Legacy:
			legacy = max(legacy, v)
		case v < mcp.ModernVersions()[0]:
			older = true
		}
	}
	switch {
	case modern != "":
		return Probe{Verdict: VerdictModern, Version: modern, Reason: "the server speaks " + string(modern), Listed: list}
	case legacy != "":
		return Probe{Verdict: VerdictLegacy, Version: legacy, Reason: "no mutual modern version" + listed(list), Listed: list}
	case older:
		return Probe{Verdict: VerdictLegacy, Version: mcp.LatestLegacy, Reason: "no version in common" + listed(list), Listed: list}
	}
	return Probe{Verdict: VerdictIncompatible, Reason: "no mutual version" + listed(list), Listed: list}
}

func newest(versions []mcp.Version) mcp.Version {
	if len(versions) == 0 {
		return mcp.LatestModern
	}
	return slices.Max(versions)
}
