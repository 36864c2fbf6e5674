// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// errCancelled is the cause with which a request ends that the client gave up.
var errCancelled = errors.New("the client cancelled the request")

// running are the requests of the client that are not answered.
type running struct {
	mu   sync.Mutex
	by   map[string]*request
	many int
}

type request struct {
	message *message
	cancel  context.CancelCauseFunc
}

// enter notes a request that begins. Each of a batch counts.
func (r *running) enter(life context.Context, m *message) (context.Context, context.CancelCauseFunc, *wire.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.many+len(m.ids) > maxRunning {
		return nil, nil, &wire.Error{Code: mcp.CodeTooManyRequests, Message: "too many requests at once on this connection", Data: wire.Data("ConcurrencyLimit")}
	}
	for _, id := range m.ids {
		if other := r.by[string(id)]; other != nil && !other.message.answered() {
			return nil, nil, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "the id is that of a request which is not answered yet"}
		}
	}
	one := &request{message: m}
	ctx, cancel := context.WithCancelCause(life)
	one.cancel = cancel
	if r.by == nil {
		r.by = map[string]*request{}
	}
	for _, id := range m.ids {
		r.by[string(id)] = one
	}
	r.many += len(m.ids)
	return ctx, cancel, nil
}

// leave forgets a request. Its id may be another's by now: the answer was
// written before.
func (r *running) leave(m *message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range m.ids {
		if one := r.by[string(id)]; one != nil && one.message == m {
			delete(r.by, string(id))
		}
	}
	r.many -= len(m.ids)
}

// get gives the request with an id, nil for none.
func (r *running) get(id []byte) *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[string(id)]
}

// endListening ends the requests that have no end of their own.
func (r *running) endListening() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.by {
		if one.message.isListen() {
			one.cancel(errEnded)
		}
	}
}
