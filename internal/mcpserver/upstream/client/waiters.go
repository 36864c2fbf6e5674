// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"strconv"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// waiters are requests whose answers come on one stream for all.
type waiters struct {
	mu      sync.Mutex
	pending map[int64]chan answer
}

type answer struct {
	message incoming
	err     error
}

// exchange sends a request and waits for its answer, for ctx, or for the end
// of the stream.
func (w *waiters) exchange(ctx context.Context, m *message, ended <-chan struct{}, send func() error) ([]byte, error) {
	result := make(chan answer, 1)
	w.mu.Lock()
	if w.pending == nil {
		w.pending = map[int64]chan answer{}
	}
	w.pending[m.id] = result
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.pending, m.id)
		w.mu.Unlock()
	}()
	if err := send(); err != nil {
		return nil, err
	}
	select {
	case a := <-result:
		return a.outcome()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-ended:
		select {
		case a := <-result: // It came before the end.
			return a.outcome()
		default:
			return nil, &Error{Reason: ConnectionLost}
		}
	}
}

func (a *answer) outcome() ([]byte, error) {
	if a.err != nil {
		return nil, a.err
	}
	return a.message.outcome(0)
}

// deliver hands a response to who waits for it.
func (w *waiters) deliver(in incoming) {
	id, err := strconv.ParseInt(string(in.id), 10, 64)
	if text, ok := wire.Text(in.id); ok {
		id, err = strconv.ParseInt(text, 10, 64)
	}
	if err == nil && in.answers(id) {
		w.give(id, answer{message: in})
	}
}

func (w *waiters) give(id int64, a answer) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiter := w.pending[id]
	if waiter == nil {
		return false
	}
	delete(w.pending, id)
	waiter <- a // It has room for one.
	return true
}

// fail gives err to the request of this id, or, where none is of it, to all.
func (w *waiters) fail(ids []int64, err error) {
	for _, id := range ids {
		if w.give(id, answer{err: err}) {
			return
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, waiter := range w.pending {
		delete(w.pending, id)
		waiter <- answer{err: err}
	}
}
