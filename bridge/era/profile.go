package era

import (
	"math/bits"
	"strings"
)

// Profile is a set of client features: what a link declares in its initialize, and what a client must declare to be asked for
// (translation 14.3, META-06). The zero value is the set of a client that can be asked nothing.
type Profile uint8

// The features, in the order String and Capabilities name them.
const (
	ElicitForm    Profile = 1 << iota // elicitation by a form, also declared by an elicitation without modes (CLF-01)
	ElicitURL                         // elicitation by a URL
	Sampling                          // sampling
	SamplingTools                     // sampling with tools (CLF-09); comes with Sampling
	Roots                             // roots
)

var featureNames = [...]string{"e.form", "e.url", "sampling", "sampling.tools", "roots"}

// ProfileOf returns the features that raw client capabilities of either era declare. A capability that is null or false is
// not declared, true is an empty object. What is no object declares nothing.
func ProfileOf(capabilities []byte) (p Profile) {
	if len(capabilities) <= len(emptyObject) {
		return 0
	}
	each(capabilities, func(name string, v []byte) {
		switch name {
		case "elicitation":
			p |= elicitation(v)
		case "sampling":
			p |= Sampling
			if HasCapability(v, "tools") {
				p |= SamplingTools
			}
		case "roots":
			p |= Roots
		}
	})
	return p
}

func elicitation(v []byte) (p Profile) {
	if isEmpty(v) {
		return ElicitForm
	}
	if HasCapability(v, "form") {
		p |= ElicitForm
	}
	if HasCapability(v, "url") {
		p |= ElicitURL
	}
	return p
}

// Subset reports whether a client of profile o can be asked everything that p declares.
func (p Profile) Subset(o Profile) bool { return p&^o == 0 }

// Len is the number of features.
func (p Profile) Len() int { return bits.OnesCount8(uint8(p)) }

// String lists the features with commas, "" for none.
func (p Profile) String() string {
	var names []string
	for i, name := range featureNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// Capabilities returns the capabilities object that declares the profile in a legacy handshake, raw. Roots come without
// listChanged, which the bridge does not keep (CLF-13). ProfileOf of it is p, for every p ProfileOf returns.
func (p Profile) Capabilities() []byte {
	var out, modes, sampling object
	if p&ElicitForm != 0 {
		modes.add("form", emptyObject)
	}
	if p&ElicitURL != 0 {
		modes.add("url", emptyObject)
	}
	if !modes.empty() {
		out.add("elicitation", modes.bytes())
	}
	if p&SamplingTools != 0 {
		sampling.add("tools", emptyObject)
	}
	if p&(Sampling|SamplingTools) != 0 {
		out.add("sampling", sampling.bytes())
	}
	if p&Roots != 0 {
		out.add("roots", emptyObject)
	}
	return out.bytes()
}
