// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"sync"
)

// Causes with which a request's context ends.
var (
	// ErrCancelled: the client sent notifications/cancelled.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrEnded: the client's session or connection is over.
	ErrEnded = errors.New("the session is over")
)

// Calls are the running requests that one client may cancel by their ids: of a
// session, or of a connection of the modern era. The zero value is usable.
type Calls struct {
	mu      sync.Mutex
	running map[string]*running
	ended   bool
}

type running struct{ cancel context.CancelCauseFunc }

// Begin registers a request. done must be called when it has ended.
func (c *Calls) Begin(ctx context.Context, id []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &running{cancel}
	c.mu.Lock()
	if c.running == nil {
		c.running = map[string]*running{}
	}
	// A client that uses an id twice can cancel the later one only.
	c.running[string(id)] = r
	ended := c.ended
	c.mu.Unlock()
	if ended {
		cancel(ErrEnded)
	}
	key := string(id)
	return ctx, func() {
		c.mu.Lock()
		if c.running[key] == r {
			delete(c.running, key)
		}
		c.mu.Unlock()
		cancel(nil)
	}
}

// Cancel ends the request of a raw id. False: there is none.
func (c *Calls) Cancel(id []byte) bool {
	c.mu.Lock()
	r := c.running[string(id)]
	c.mu.Unlock()
	if r == nil {
		return false
	}
	r.cancel(ErrCancelled)
	return true
}

// End cancels all that runs, and all that is begun afterwards.
func (c *Calls) End() {
	c.mu.Lock()
	c.ended = true
	all := make([]*running, 0, len(c.running))
	for _, r := range c.running {
		all = append(all, r)
	}
	c.mu.Unlock()
	for _, r := range all {
		r.cancel(ErrEnded)
	}
}

// Len is how many run.
func (c *Calls) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running)
}
