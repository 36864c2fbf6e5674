// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/event"
)

// wakeups is a set of keys on its way to a channel. Adding never blocks; a
// key that waits already is not added again.
type wakeups struct {
	out   chan event.TypedGenericEvent[Key]
	ready chan struct{}

	mu      sync.Mutex
	order   []Key
	pending map[Key]bool
}

func newWakeups() *wakeups {
	return &wakeups{
		out:     make(chan event.TypedGenericEvent[Key], 64),
		ready:   make(chan struct{}, 1),
		pending: map[Key]bool{},
	}
}

func (w *wakeups) add(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pending[key] {
		return
	}
	w.pending[key] = true
	w.order = append(w.order, key)
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *wakeups) forget(key Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)
}

// take gives the next key that is still wanted.
func (w *wakeups) take() (Key, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.order) > 0 {
		key := w.order[0]
		w.order = w.order[1:]
		if w.pending[key] {
			delete(w.pending, key)
			return key, true
		}
	}
	w.order = nil
	return Key{}, false
}

// forward sends keys until ctx ends.
func (w *wakeups) forward(ctx context.Context) {
	for {
		key, ok := w.take()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-w.ready:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case w.out <- event.TypedGenericEvent[Key]{Object: key}:
		}
	}
}
