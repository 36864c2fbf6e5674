// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry holds what is served: an immutable snapshot that is swapped
// as a whole, the calls that run in it, and who is told of changes.
package registry

import (
	"context"
	"slices"
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

// Swap puts next in place. It cancels and awaits the calls of withdrawn
// entries and tells subscribers what changed. It returns when the change is
// complete; stuck says how many withdrawn entries still had calls then.
func (r *Registry) Swap(ctx context.Context, next *Snapshot) (changes Changes, stuck int) {
	r.swap.Lock()
	defer r.swap.Unlock()
	old := r.current.Load()
	if old != nil {
		inherit(old.tools, next.tools)
		inherit(old.resources, next.resources)
		inherit(old.templates, next.templates)
		inherit(old.prompts, next.prompts)
	}
	r.current.Store(next)
	var withdrawn []<-chan struct{}
	if old != nil {
		changes = changesOf(old, next)
		withdrawn = slices.Concat(withdraw(old.tools, next.tools), withdraw(old.resources, next.resources),
			withdraw(old.templates, next.templates), withdraw(old.prompts, next.prompts))
	}
	r.mu.Lock()
	hooks := r.onSwap
	r.mu.Unlock()
	for _, f := range hooks {
		f(old, next)
	}
	if changes != (Changes{}) {
		r.notify(changes)
	}
	return changes, await(ctx, withdrawn)
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
