// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
)

// maxFollowed is how many resources of one upstream are followed at once;
// nothing is told of further ones.
const maxFollowed = 4096

// follows are the resources of one upstream of which clients want to hear. It
// outlives connections.
type follows struct {
	mu   sync.Mutex
	uris map[string]*followed
	// news is closed when uris are others.
	news chan struct{}
	// ticks counts changes; no version of a resource comes twice.
	ticks uint64
}

// followed is one resource, whoever follows it.
type followed struct {
	users   int
	version uint64
	// by is what subscribes to it now; nil while nothing does.
	by *group
	// stands is closed when it is known whether the upstream tells of it.
	stands  chan struct{}
	settled bool
	// missed: a change may have gone unheard.
	missed bool
}

func newFollows() *follows {
	return &follows{uris: map[string]*followed{}, news: make(chan struct{})}
}

// followsOf gives those of an upstream.
func (m *Manager) followsOf(upstream string) *follows {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.follows[upstream]
	if f == nil {
		f = newFollows()
		m.follows[upstream] = f
	}
	return f
}

// Follow implements registry.Followed.
func (h *reading) Follow(uri string) (registry.Following, bool) {
	s := h.m.source(h.upstream)
	if s == nil {
		return registry.Following{}, false
	}
	s.mu.Lock()
	connected, never := s.session != nil, s.listing != nil && !s.listing.Can.Subscribe
	s.mu.Unlock()
	if never {
		return registry.Following{}, false
	}
	return h.m.followsOf(h.upstream).add(uri, connected)
}

// VersionOf implements registry.Followed.
func (h *reading) VersionOf(uri string) uint64 {
	f := h.m.followsOf(h.upstream)
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.uris[uri]; r != nil {
		return r.version
	}
	return 0
}

// add counts one more who follows a resource. connected: an answer is to be
// expected soon.
func (f *follows) add(uri string, connected bool) (registry.Following, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.uris[uri]
	if r == nil {
		if len(f.uris) >= maxFollowed {
			return registry.Following{}, false
		}
		r = &followed{stands: make(chan struct{})}
		f.uris[uri] = r
		f.tellNews()
	}
	r.users++
	out := registry.Following{Settled: r.stands, Late: func() { f.late(r) }, Release: sync.OnceFunc(func() { f.remove(uri, r) })}
	if !connected {
		// Who follows learns of what changes until there is a connection.
		r.missed = r.missed || r.by == nil
		out.Settled = closedChannel
	}
	return out, true
}

var closedChannel = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// late: somebody waited no longer for the subscription to stand.
func (f *follows) late(r *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.missed = r.missed || r.by == nil
}

func (f *follows) remove(uri string, r *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.users--; r.users == 0 {
		delete(f.uris, uri)
		f.tellNews()
	}
}

// tellNews is called with the lock held.
func (f *follows) tellNews() {
	close(f.news)
	f.news = make(chan struct{})
}

// wanted gives the resources that are followed, and what is closed when they
// are others.
func (f *follows) wanted() (map[string]bool, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make(map[string]bool, len(f.uris))
	for uri := range f.uris {
		out[uri] = true
	}
	return out, f.news
}

// stand notes that g is told of its resources from now on; changed says that
// one of them may have changed unheard before.
func (f *follows) stand(g *group) (changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, uri := range g.uris {
		r := f.uris[uri]
		if r == nil {
			continue
		}
		r.by = g
		r.settle()
		if r.missed {
			r.missed, changed = false, true
			f.bump(r)
		}
	}
	return changed
}

// lose notes that g is told of nothing any more, and for how long nobody is.
func (f *follows) lose(g *group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, uri := range g.uris {
		if r := f.uris[uri]; r != nil && r.by == g {
			r.by, r.missed = nil, true
		}
	}
}

// refuse notes that the upstream does not tell of what g is for.
func (f *follows) refuse(g *group) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, uri := range g.uris {
		if r := f.uris[uri]; r != nil && r.by == nil {
			r.settle()
			r.missed = true
		}
	}
}

func (r *followed) settle() {
	if !r.settled {
		r.settled = true
		close(r.stands)
	}
}

// missed notes that any change may have gone unheard.
func (f *follows) missed() (some bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.uris {
		f.bump(r)
	}
	return len(f.uris) > 0
}

// bump is called with the lock held.
func (f *follows) bump(r *followed) {
	f.ticks++
	r.version = f.ticks
}

// updated notes a change of uri, or of what lies below a followed resource.
func (f *follows) updated(uri string) (known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r := f.uris[uri]; r != nil {
		f.bump(r)
		return true
	}
	for above, r := range f.uris {
		if strings.HasPrefix(uri, strings.TrimSuffix(above, "/")+"/") {
			f.bump(r)
			known = true
		}
	}
	return known
}

// updated is told by sessions of changes of single resources.
func (m *Manager) updated(upstream, uri string) {
	if m.followsOf(upstream).updated(uri) {
		m.options.Updated()
	}
}
