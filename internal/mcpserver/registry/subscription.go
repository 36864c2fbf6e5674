// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"reflect"
	"slices"
)

// Changes says what is different since somebody looked last.
type Changes struct {
	// Tools, Resources (templates included) and Prompts: that list.
	Tools, Resources, Prompts bool
	// Content: what some resource gives may be different.
	Content bool
}

// Lists reports whether any list changed.
func (c Changes) Lists() bool { return c.Tools || c.Resources || c.Prompts }

// Join gives both.
func (c Changes) Join(o Changes) Changes {
	return Changes{c.Tools || o.Tools, c.Resources || o.Resources, c.Prompts || o.Prompts, c.Content || o.Content}
}

// changesOf compares two snapshots.
func changesOf(old, next *Snapshot) Changes {
	c := Changes{
		Tools:     old.tools.hash != next.tools.hash,
		Resources: old.resources.hash != next.resources.hash || old.templates.hash != next.templates.hash,
		Prompts:   old.prompts.hash != next.prompts.hash,
	}
	c.Content = c.Resources || otherReaders(old, next) || otherVersions(old.resources, next.resources) || otherVersions(old.templates, next.templates)
	return c
}

func otherReaders(old, next *Snapshot) bool {
	return !slices.EqualFunc(old.readers, next.readers, func(a, b *Resource) bool { return reflect.DeepEqual(a.config, b.config) })
}

func otherVersions(old, next *list[*Resource]) bool {
	for id, r := range next.known {
		if before := old.known[id]; before == nil || before.version != r.version {
			return true
		}
	}
	return false
}

// Subscription tells of changes. Changes that come while one is being told are
// told as one more.
type Subscription struct {
	// Changed holds a value after each change; Take says what it was.
	Changed chan struct{}
	// Closed is closed when the server drains.
	Closed chan struct{}

	registry *Registry
	pending  Changes // guarded by Registry.mu
}

// Take gives what changed since the last Take.
func (s *Subscription) Take() Changes {
	s.registry.mu.Lock()
	defer s.registry.mu.Unlock()
	taken := s.pending
	s.pending = Changes{}
	return taken
}

// Subscribe registers a subscription; ok is false when the server drains.
// From its return on no change is missed.
func (r *Registry) Subscribe() (s *Subscription, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	s = &Subscription{Changed: make(chan struct{}, 1), Closed: make(chan struct{}), registry: r}
	r.subscribers[s] = struct{}{}
	return s, true
}

// Unsubscribe ends a subscription.
func (r *Registry) Unsubscribe(s *Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subscribers, s)
}

// ContentChanged tells that what some resource gives may be different.
func (r *Registry) ContentChanged() { r.notify(Changes{Content: true}) }

func (r *Registry) notify(c Changes) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.subscribers {
		s.pending = s.pending.Join(c)
		select {
		case s.Changed <- struct{}{}:
		default: // One more pass is due already.
		}
	}
}

// Close ends all subscriptions and takes no new one. It is idempotent.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.closed = true
	for s := range r.subscribers {
		close(s.Closed)
	}
}
