package config

import (
	"net/url"
	"time"
)

// Ask bounds what a legacy server may have open with modern clients (translation 5).
type Ask struct {
	TTL          time.Duration // a question waits so long for its answer
	Life         time.Duration // longest time of a call that asks
	Window       time.Duration // further questions are waited for so long; negative: not at all
	PerPrincipal int           // calls of one caller that wait for answers
	PerLink      int           // calls at one process that wait for answers
}

// Features of clients that `profile` can name, in the words of the protocol.
const (
	FeatureForm          = "elicitation.form"
	FeatureURL           = "elicitation.url"
	FeatureSampling      = "sampling"
	FeatureSamplingTools = "sampling.tools"
	FeatureRoots         = "roots"
)

func features() []string {
	return []string{FeatureForm, FeatureURL, FeatureSampling, FeatureSamplingTools, FeatureRoots}
}

// ProfileAll is the profile "fixed": the server is told of all features, whatever a client has.
func ProfileAll() []string { return features() }

func newAsk() Ask {
	return Ask{TTL: 10 * time.Minute, Life: time.Hour, Window: 30 * time.Millisecond, PerPrincipal: 32, PerLink: 64}
}

// askKeys are the settings for servers that ask their clients something.
func (e *entry) askKeys() settings {
	return settings{
		"ask": object(settings{
			"ttl":          duration(&e.Ask.TTL, 24*time.Hour, "How long a question to a client of 2026-07-28 waits for its answer."),
			"life":         duration(&e.Ask.Life, 24*time.Hour, "Longest time of a call that asks something."),
			"window":       {e.readWindow, anyOf(durationShape(spell(e.Ask.Window)), shape{"const": "0"}), "How long further questions are waited for, so that the user is asked once; \"0\": not at all."},
			"perPrincipal": integer(&e.Ask.PerPrincipal, 1, 10_000, "Calls of one caller that wait for answers at a time."),
			"perLink":      integer(&e.Ask.PerLink, 1, 10_000, "Calls at one process that wait for answers at a time."),
		}, "Bounds of questions that a server of an older revision puts to clients of 2026-07-28."),
		"profile": {e.readProfile, anyOf(shape{"enum": []string{"auto", "fixed"}}, list(shape{"enum": features()})),
			"Features of clients that the server is told of: those each client declares (auto, which takes a process for each set), all (fixed), or these."},
		"overDeclare":  boolean(&e.OverDeclare, "Tell the server of all features, also those a client has not: a call that then needs one fails with -32021."),
		"roots":        {e.readRoots, list(shape{"pattern": "^file:///"}), "Folders the server is told of when its client has no roots, as file:// URIs."},
		"restartReads": boolean(&e.RestartReads, "Run a read or prompt that a question interrupted again when its call is gone. Tools are never run again."),
	}
}

func (e *entry) readWindow(n node) {
	if n.kind() == '"' && n.literal() == "0" {
		e.Ask.Window = -1
		return
	}
	duration(&e.Ask.Window, time.Second, "").read(n)
}

func (e *entry) readProfile(n node) {
	if n.kind() != '[' {
		var mode string
		n.choose(&mode, "auto", "fixed")
		if e.Profile = nil; mode == "fixed" {
			e.Profile = ProfileAll()
		}
		return
	}
	e.Profile = []string{}
	for _, f := range n.elements() {
		var name string
		f.choose(&name, features()...)
		if name != "" {
			e.Profile = append(e.Profile, name)
		}
	}
}

func (e *entry) readRoots(n node) {
	e.Roots = nil
	for _, f := range n.elements() {
		text, _ := f.expanded()
		if u, err := url.Parse(text); err != nil || u.Scheme != "file" || u.Path == "" {
			f.fail("%q must be a file:// URI, such as \"file:///srv/data\"", text)
			continue
		}
		e.Roots = append(e.Roots, text)
	}
}

// shownAsk is an Ask in the spelling of the file.
type shownAsk struct {
	TTL          string `json:"ttl"`
	Life         string `json:"life"`
	Window       string `json:"window"`
	PerPrincipal int    `json:"perPrincipal"`
	PerLink      int    `json:"perLink"`
}

func (a Ask) show() shownAsk {
	window := "0"
	if a.Window > 0 {
		window = spell(a.Window)
	}
	return shownAsk{spell(a.TTL), spell(a.Life), window, a.PerPrincipal, a.PerLink}
}

// showProfile is what `profile` says.
func (s *Server) showProfile() any {
	if s.Profile == nil {
		return "auto"
	}
	return s.Profile
}
