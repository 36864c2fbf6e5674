// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
)

// followWait is how long a subscription waits for those of upstreams to stand.
const followWait = 2 * time.Second

// following is what one client has upstreams tell of. It is not safe for
// concurrent use.
type following struct {
	// held are by URI and then by upstream.
	held map[string]map[string]registry.Following
}

// set follows uri at each upstream that may read it for the caller, and no
// longer at others. told is false where nothing will be told of changes.
func (f *following) set(ctx context.Context, r *Request, uri string) (told bool) {
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
	if f.held == nil {
		f.held = map[string]map[string]registry.Following{}
	}
	f.held[uri] = after
	return told
}

// wait waits until all that is followed is told from now on. What takes longer
// than ctx is told later.
func (f *following) wait(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	for _, held := range f.held {
		for _, one := range held {
			select {
			case <-one.Settled:
			case <-ctx.Done():
				one.Late()
			}
		}
	}
}

// drop ends what is followed for uri.
func (f *following) drop(uri string) {
	for _, held := range f.held[uri] {
		held.Release()
	}
	delete(f.held, uri)
}

// close ends all.
func (f *following) close() {
	for uri := range f.held {
		f.drop(uri)
	}
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
