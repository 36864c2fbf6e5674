// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
)

// group holds the running calls of one name, over the versions of its entry:
// a replaced entry's calls go on, a withdrawn one's are cancelled and awaited.
type group struct {
	mu      sync.Mutex
	closed  bool
	running map[*Running]struct{}
	idle    chan struct{} // made by close, closed when nothing runs
}

func newGroup() *group { return &group{running: map[*Running]struct{}{}} }

// Running is one call in flight.
type Running struct {
	group  *group
	cancel context.CancelCauseFunc
}

// Enter notes a call; cancel is called when its entry is withdrawn. It returns
// nil when that happened already. Leave must be called at the end.
func (e *Entry) Enter(cancel context.CancelCauseFunc) *Running {
	g := e.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	r := &Running{group: g, cancel: cancel}
	g.running[r] = struct{}{}
	return r
}

// Leave ends what Enter began.
func (r *Running) Leave() {
	g := r.group
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.running, r)
	if g.closed && len(g.running) == 0 {
		close(g.idle)
	}
}

// close cancels what runs and returns a channel that closes when all is over.
func (g *group) close() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.idle = make(chan struct{})
		if len(g.running) == 0 {
			close(g.idle)
		}
	}
	for r := range g.running {
		r.cancel(call.ErrWithdrawn)
	}
	return g.idle
}
