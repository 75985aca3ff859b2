package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/bridge"
	"mcpbridge/bridge/era"
	"mcpbridge/bridge/mcp"
	"mcpbridge/bridge/pool"
)

// A key has one link, and different keys have different ones: nothing is shared between eras or principals (translation
// 14.2, SEC-08). A link of a session or a request is nobody else's.
func TestKeys(t *testing.T) {
	p := newPool(t, &shop{}, pool.Config{})
	defer closePool(t, p)
	keys := []pool.Key{modern("a"), modern("b"), {Era: mcp.Legacy, Principal: "a"}, modern(""),
		{Era: mcp.Modern, Principal: "a", Profile: era.Roots}}
	seen := map[*bridge.Link]bool{}
	for _, k := range keys {
		l := shared(t, p, k)
		if seen[l] {
			t.Errorf("%v shares a link with another key", k)
		}
		seen[l] = true
		if shared(t, p, k) != l {
			t.Errorf("%v has two links", k)
		}
	}
	for range 2 {
		single, err := p.Single(modern("a"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range []*bridge.Link{exclusive(t, p), single} {
			if seen[l] {
				t.Error("a link of a session or of a request is shared")
			}
			seen[l] = true
		}
	}
	if p.Len() != 9 {
		t.Errorf("%d links, want 9", p.Len())
	}
}

// Links take no place: only Config.Links bounds them, for all kinds together; a known key is always served.
func TestLinkLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(t, &shop{}, pool.Config{Max: 1, Links: 4})
		defer closePool(t, p)
		shared(t, p, modern("a"))
		first := exclusive(t, p)
		exclusive(t, p)
		single, _ := p.Single(modern("a"), nil)
		refused := func() {
			t.Helper()
			_, one := p.Exclusive(nil, false)
			_, two := p.Shared(modern("z"), nil)
			_, three := p.Single(modern("a"), nil)
			for _, err := range []*bridge.Error{one, two, three} {
				if err == nil {
					t.Fatal("a fifth link")
				}
				if err.Status != 503 || err.Reason != bridge.ReasonOverload || err.Retry == 0 {
					t.Errorf("refused with %+v", err)
				}
			}
		}
		refused()
		shared(t, p, modern("a"))
		p.Release(first)
		p.Release(first)                     // again: nothing
		p.Release(shared(t, p, modern("a"))) // of several clients: nothing
		exclusive(t, p)
		refused()
		p.Release(single)
		shared(t, p, modern("b"))
		refused()
	})
}

// A principal's requests that are out can be found, and nobody else's (SEC-08).
func TestSingles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{})
		defer closePool(t, p)
		a, _ := p.Single(modern("a"), nil)
		b, _ := p.Single(modern("b"), nil)
		shared(t, p, modern("a"))
		exclusive(t, p)
		if got := p.Singles("a"); len(got) != 1 || got[0] != a {
			t.Errorf("of a: %v", got)
		}
		open(t, a)
		p.Release(a)
		synctest.Wait()
		if running, _, _ := s.counts(); running != 0 || len(p.Singles("a")) != 0 {
			t.Error("a request's link outlives it")
		}
		if got := p.Singles("b"); len(got) != 1 || got[0] != b {
			t.Errorf("of b: %v", got)
		}
	})
}

const (
	none     era.Profile = 0
	form                 = era.ElicitForm
	formURL              = era.ElicitForm | era.ElicitURL
	sampling             = era.Sampling
	roots                = era.Roots
)

// An owner has at most four links; a client of a fifth profile gets the largest that is a subset of its own, never a larger one
// (translation 14.3, META-06).
func TestFifthProfile(t *testing.T) {
	for name, tt := range map[string]struct {
		have []era.Profile
		ask  era.Profile
		want era.Profile
	}{
		"largest subset":       {[]era.Profile{none, form, formURL, roots}, formURL | sampling, formURL},
		"never a larger one":   {[]era.Profile{form, formURL, roots, none}, sampling, none},
		"not the widest":       {[]era.Profile{none, roots, form | roots | sampling, form}, form | roots, roots},
		"the oldest of equals": {[]era.Profile{none, sampling, roots, formURL}, sampling | roots, sampling},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, &shop{}, pool.Config{})
			defer closePool(t, p)
			key := func(f era.Profile) pool.Key { return pool.Key{Era: mcp.Modern, Principal: "a", Profile: f} }
			links := map[era.Profile]*bridge.Link{}
			for _, f := range tt.have {
				links[f] = shared(t, p, key(f))
			}
			if p.Len() != 4 {
				t.Fatalf("%d links for four profiles", p.Len())
			}
			for range 2 {
				if got := shared(t, p, key(tt.ask)); got != links[tt.want] {
					t.Errorf("%q did not get the link of %q", tt.ask, tt.want)
				}
			}
			other := key(tt.ask)
			other.Principal = "b"
			legacy := key(tt.ask)
			legacy.Era = mcp.Legacy
			for _, k := range []pool.Key{other, legacy} {
				shared(t, p, k)
				if entry(t, p, shared(t, p, k)).Key != k {
					t.Errorf("%v counts for others", k)
				}
			}
		})
	}
}

// Where no link asks little enough of a fifth profile, the one that was not used for longest makes room if nobody uses it; else
// the client is refused.
func TestFifthProfileWithoutSubset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Yield: time.Minute})
		defer closePool(t, p)
		key := func(f era.Profile) pool.Key { return pool.Key{Era: mcp.Modern, Principal: "a", Profile: f} }
		have := []era.Profile{form, formURL, roots, sampling | roots}
		var links []*bridge.Link
		for _, f := range have {
			l := shared(t, p, key(f))
			open(t, l)
			links = append(links, l)
			time.Sleep(time.Second)
		}
		end := call(t, links[0], mcp.ToolsCall)
		member := &session{}
		links[1].Attach(member)
		refused := func(why string) {
			t.Helper()
			_, err := p.Shared(key(none), nil)
			if err == nil {
				t.Fatalf("served, though %s", why)
			}
			if err.Status != 503 || err.Reason != bridge.ReasonOverload {
				t.Errorf("refused with %+v", err)
			}
		}
		time.Sleep(57*time.Second + time.Second - 1) // the third link has been there for a minute, less one
		refused("all links are used, or were a moment ago")
		time.Sleep(time.Nanosecond)
		l := shared(t, p, key(none))
		if got := entry(t, p, l).Key.Profile; got != none {
			t.Errorf("the empty profile got the link of %q", got)
		}
		synctest.Wait()
		for i, want := range []bool{true, true, false, true} {
			if live := links[i].Live() != nil; live != want {
				t.Errorf("link %d lives: %v, want %v", i, live, want)
			}
		}
		if shared(t, p, key(sampling)) != l {
			t.Error("there is a subset now")
		}
		end()
	})
}

// What the pool says about itself.
func TestEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shop{}
		p := newPool(t, s, pool.Config{Spare: 1})
		end := running(t, p)
		synctest.Wait()
		time.Sleep(time.Second)
		a := shared(t, p, modern("a"))
		shared(t, p, modern(""))
		own := exclusive(t, p)
		single, _ := p.Single(modern("c"), nil)
		want := map[string]int{"principal": 1, "shared": 1, "session": 1, "request": 1, "spare": 1}
		for kind, n := range want {
			if got := kinds(p)[kind]; got != n {
				t.Errorf("%d of kind %s, want %d", got, kind, n)
			}
		}
		if e := p.Entries()[0]; e.Kind != pool.KindSpare || e.Link != nil || e.Back == nil || time.Since(e.Since) != time.Second {
			t.Errorf("the oldest is %+v", e)
		}
		if e := entry(t, p, a); e.Key != modern("a") || e.Back != nil || time.Since(e.Since) != 0 {
			t.Errorf("a link without a process: %+v", e)
		}
		if e := entry(t, p, single); e.Key != modern("c") {
			t.Errorf("of a request: %+v", e)
		}
		open(t, own)
		if _, ok := entry(t, p, own).Back.(*server); !ok {
			t.Errorf("the back of a link is %T", entry(t, p, own).Back)
		}
		end()
		if n := len(p.Entries()); n != 0 {
			t.Errorf("%d entries of a closed pool", n)
		}
	})
}

// The handshake of a link says whose it is.
func TestReopened(t *testing.T) {
	for _, reopened := range []bool{false, true} {
		held := make(chan bool, 1)
		p := pool.New(t.Context(), pool.Config{Name: "srv", Back: func() bridge.Back { return asks{back: (&shop{}).back(), held: held} }})
		l, err := p.Exclusive([]byte(`{"x":1}`), reopened)
		if err != nil {
			t.Fatal(err)
		}
		open(t, l)
		if got := <-held; got == reopened {
			t.Errorf("reopened %v: initialized is held for the client: %v", reopened, got)
		}
		closePool(t, p)
	}
}

// The errors of a full server and of one that is being stopped name the server.
func TestRefusalsNameTheServer(t *testing.T) {
	p := newPool(t, &shop{}, pool.Config{Links: 1})
	exclusive(t, p)
	_, full := p.Exclusive(nil, false)
	closePool(t, p)
	_, stopping := p.Exclusive(nil, false)
	for _, err := range []*bridge.Error{full, stopping} {
		if err == nil || !strings.Contains(err.Message, "srv") {
			t.Errorf("refused with %v", err)
		}
	}
}
