// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
)

// followWait is how long a subscription waits for those of upstreams to stand.
const followWait = 2 * time.Second

// following is what one client has upstreams tell of.
type following struct {
	mu sync.Mutex
	// held are by URI and then by upstream; nil after the end.
	held map[string]map[string]registry.Following
}

func newFollowing() *following {
	return &following{held: map[string]map[string]registry.Following{}}
}

// set follows uri at each upstream that may read it for the caller, and no
// longer at others. told is false where nothing will be told of changes.
func (f *following) set(ctx context.Context, r *Request, uri string) (told bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		return false
	}
	before := f.held[uri]
	after := map[string]registry.Following{}
	resource, _ := r.resource(ctx, uri)
	if resource != nil && !resource.Foreign {
		told = true
	} else if resource != nil {
		for _, source := range r.sources(ctx, resource, uri) {
			name := source.Upstream()
			held, ok := before[name]
			if !ok {
				held, ok = source.Follow(uri)
			}
			if ok {
				after[name] = held
				told = true
			}
		}
	}
	for name, held := range before {
		if _, stays := after[name]; !stays {
			held.Release()
		}
	}
	f.held[uri] = after
	return told
}

// wait waits until all that is followed is told from now on. What takes longer
// than ctx is told later.
func (f *following) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	for _, one := range f.all() {
		select {
		case <-one.Settled:
		case <-ctx.Done():
			one.Late()
		}
	}
}

func (f *following) all() (out []registry.Following) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, held := range f.held {
		out = slices.AppendSeq(out, maps.Values(held))
	}
	return out
}

// drop ends what is followed for uri.
func (f *following) drop(uri string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, held := range f.held[uri] {
		held.Release()
	}
	delete(f.held, uri)
}

// close ends all, for good.
func (f *following) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, held := range f.held {
		for _, one := range held {
			one.Release()
		}
	}
	f.held = nil
}

// follows are what legacy sessions have upstreams tell of.
type follows struct {
	mu sync.Mutex
	by map[*session.Session]*following
}

// of gives that of a session, which lasts as long as the session does. It is
// nil where there is none and create is false.
func (f *follows) of(s *session.Session, create bool) *following {
	f.mu.Lock()
	defer f.mu.Unlock()
	own := f.by[s]
	if own != nil || !create {
		return own
	}
	if f.by == nil {
		f.by = map[*session.Session]*following{}
	}
	own = newFollowing()
	f.by[s] = own
	go func() {
		<-s.Done()
		f.mu.Lock()
		delete(f.by, s)
		f.mu.Unlock()
		own.close()
	}()
	return own
}

// versionOf tells versions of a resource's content apart; empty for one that
// the caller does not see.
func versionOf(ctx context.Context, r *Request, uri string) string {
	resource, _ := r.resource(ctx, uri)
	if resource == nil {
		return ""
	}
	if !resource.Foreign {
		return resource.Version()
	}
	var out strings.Builder
	for _, source := range r.sources(ctx, resource, uri) {
		out.WriteString(source.VersionOf(uri))
		out.WriteByte('\n')
	}
	return out.String()
}
