package pool

import (
	"slices"
	"time"

	"mcpbridge/bridge"
)

// maxProfiles is how many shared links one owner may have. Clients have one profile as a rule; the bound only guards against
// games (translation 14.3).
const maxProfiles = 4

// shareLocked returns the link of a key that has none of its own: a new one, or that of another profile.
func (p *Pool) shareLocked(k Key, params []byte) (*tenant, *bridge.Error) {
	if p.closed {
		return nil, p.stopping()
	}
	group := p.groups[k.owner()]
	if len(group) >= maxProfiles {
		if t := fitting(group, k); t != nil {
			return t, nil
		}
		if !p.vacateLocked(group) {
			return nil, p.profiles()
		}
	}
	t, err := p.newLocked(k.kind(), k, bridge.LinkConfig{Params: params, Keep: p.cfg.Keep})
	if err != nil {
		return nil, err
	}
	p.shared[k] = t
	p.groups[k.owner()] = append(p.groups[k.owner()], t)
	return t, nil
}

// fitting returns the link of the largest profile that asks a client of k nothing it did not declare, the oldest of several. A
// larger one than the client's own is never given: it would be asked what it cannot answer (META-06).
func fitting(group []*tenant, k Key) (best *tenant) {
	for _, t := range group {
		if t.key.Profile.Subset(k.Profile) && (best == nil || t.key.Profile.Len() > best.key.Profile.Len()) {
			best = t
		}
	}
	return best
}

// vacateLocked ends the link of a group that was not used for longest, if nobody uses it and that for as long as a process must be
// unused to make room for another.
func (p *Pool) vacateLocked(group []*tenant) bool {
	now := time.Now()
	var old *tenant
	oldest := now.Add(-p.cfg.Yield)
	for _, t := range group {
		if since, idle := t.idle(now); idle && !since.After(oldest) {
			old, oldest = t, since
		}
	}
	if old != nil {
		p.unshareLocked(old)
		p.end(old, func(error) {})
	}
	return old != nil
}

// unshareLocked hands a shared link out no more.
func (p *Pool) unshareLocked(t *tenant) {
	delete(p.shared, t.key)
	o := t.key.owner()
	left := slices.DeleteFunc(p.groups[o], func(other *tenant) bool { return other == t })
	if len(left) == 0 {
		delete(p.groups, o)
		return
	}
	p.groups[o] = left
}
