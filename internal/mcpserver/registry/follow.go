// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import "strconv"

// Followed is a handler of resources whose source tells of changes of those
// that somebody follows.
type Followed interface {
	// Follow begins to follow a resource; ok is false where nothing will be
	// told of it.
	Follow(uri string) (following Following, ok bool)
	// VersionOf is another one after each change that was told of.
	VersionOf(uri string) uint64
}

// Following is that a resource is followed.
type Following struct {
	// Settled is closed when changes are told from now on, or it is known that
	// they are not.
	Settled <-chan struct{}
	// Late is called by who does not wait for it: a change until then is told
	// when it can be.
	Late func()
	// Release ends it. It is idempotent.
	Release func()
}

// Follow begins to follow uri, where an upstream reads it.
func (r *Resource) Follow(uri string) (Following, bool) {
	if f, ok := r.Handler.(Followed); ok {
		return f.Follow(uri)
	}
	return Following{}, false
}

// VersionOf tells versions apart of what is read at uri.
func (r *Resource) VersionOf(uri string) string {
	if f, ok := r.Handler.(Followed); ok {
		return r.Version() + " " + strconv.FormatUint(f.VersionOf(uri), 10)
	}
	return r.Version()
}

// Upstream that reads the resource; empty for one that is declared.
func (r *Resource) Upstream() string {
	if r.config.Upstream == nil {
		return ""
	}
	return r.config.Upstream.Upstream
}
