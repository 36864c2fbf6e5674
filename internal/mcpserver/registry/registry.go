// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry holds what is served: an immutable snapshot that is swapped
// as a whole, the calls that run in it, and who is told of changes.
package registry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// withdrawWait is how long a swap waits for cancelled calls. A handler that
// ignores its context must not hold up the catalog for ever.
const withdrawWait = 10 * time.Second

// Registry holds the current snapshot.
type Registry struct {
	current atomic.Pointer[Snapshot]

	swap sync.Mutex // one swap at a time

	mu          sync.Mutex
	subscribers map[*Subscription]struct{}
	closed      bool
	onSwap      []func(old, next *Snapshot)
}

// New gives an empty registry.
func New() *Registry {
	return &Registry{subscribers: map[*Subscription]struct{}{}}
}

// Snapshot gives what is served now, nil before the first Swap.
func (r *Registry) Snapshot() *Snapshot { return r.current.Load() }

// OnSwap registers f to be called after each swap, before the subscribers are
// told. It is for parts that keep something per entry, such as metrics.
func (r *Registry) OnSwap(f func(old, next *Snapshot)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.onSwap = append(r.onSwap, f)
}

// Swap puts next in place. It cancels and awaits the calls of withdrawn tools
// and tells subscribers if the list changed. It returns when the change is
// complete; stuck says how many withdrawn tools still had calls then.
func (r *Registry) Swap(ctx context.Context, next *Snapshot) (listChanged bool, stuck int) {
	r.swap.Lock()
	defer r.swap.Unlock()
	old := r.current.Load()
	if old != nil {
		// A replaced tool inherits its running calls.
		for name, t := range next.byName {
			if before := old.byName[name]; before != nil {
				t.group = before.group
			}
		}
	}
	r.current.Store(next)
	withdrawn := withdraw(old, next)
	r.mu.Lock()
	hooks := r.onSwap
	r.mu.Unlock()
	for _, f := range hooks {
		f(old, next)
	}
	listChanged = old != nil && old.ListHash != next.ListHash
	if listChanged {
		r.notify()
	}
	return listChanged, await(ctx, withdrawn)
}

// withdraw cancels the calls of tools that next lacks.
func withdraw(old, next *Snapshot) (idle []<-chan struct{}) {
	if old == nil {
		return nil
	}
	for name, t := range old.byName {
		if next.byName[name] == nil {
			idle = append(idle, t.group.close())
		}
	}
	return idle
}

func await(ctx context.Context, idle []<-chan struct{}) (stuck int) {
	if len(idle) == 0 {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, withdrawWait)
	defer cancel()
	for _, done := range idle {
		select {
		case <-done:
		case <-ctx.Done():
			stuck++
		}
	}
	return stuck
}

// Subscription tells of list changes. Changes that come while one is being
// told are told as one more.
type Subscription struct {
	// Changed holds a value after each change.
	Changed chan struct{}
	// Closed is closed when the server drains.
	Closed chan struct{}
}

// Subscribe registers a subscription; ok is false when the server drains.
// From its return on no change is missed.
func (r *Registry) Subscribe() (s *Subscription, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, false
	}
	s = &Subscription{Changed: make(chan struct{}, 1), Closed: make(chan struct{})}
	r.subscribers[s] = struct{}{}
	return s, true
}

// Unsubscribe ends a subscription.
func (r *Registry) Unsubscribe(s *Subscription) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.subscribers, s)
}

func (r *Registry) notify() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.subscribers {
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
