// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// maxAsks is how many requests of one peer its client is asked at once.
	maxAsks = 16
	// maxReplies is how many are being answered at once in any way; more are
	// left without an answer.
	maxReplies = 64
)

// asks are the requests of a legacy peer that its client is being asked.
type asks struct {
	asking *Asking
	life   context.Context //nolint:containedctx // of the session, which answers outlive no more than requests do
	stop   context.CancelFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
	slots  chan struct{}
	open   map[string]*question
}

type question struct {
	cancel context.CancelFunc
	// withdrawn: the peer does not want the answer any more.
	withdrawn bool
}

func newAsks(asking *Asking) *asks {
	a := &asks{asking: asking, slots: make(chan struct{}, maxReplies), open: map[string]*question{}}
	a.life, a.stop = context.WithCancel(context.Background())
	return a
}

// take answers a request of the peer by send. It never blocks: what is not
// known at once is sent later. send is called once at most.
func (a *asks) take(in incoming, send func(body []byte)) {
	method, _ := wire.Text(in.method)
	if a.asking == nil || !mcp.AsksClient(method) {
		a.run(func() { send(in.reply()) })
		return
	}
	id := string(in.id)
	ctx, cancel := context.WithCancel(a.life)
	q := &question{cancel: cancel}
	a.mu.Lock()
	full := len(a.open) >= maxAsks || a.open[id] != nil
	if !full {
		a.open[id] = q
	}
	a.mu.Unlock()
	if full {
		cancel()
		a.run(func() { send(in.refuse("too many questions at once")) })
		return
	}
	params := bytes.Clone(in.params)
	if a.run(func() {
		defer cancel()
		result, err := a.asking.Ask(ctx, method, params)
		a.mu.Lock()
		delete(a.open, id)
		withdrawn := q.withdrawn
		a.mu.Unlock()
		// What a session that ends leaves open is not answered: a call behind it
		// would go on.
		if !withdrawn && a.life.Err() == nil {
			send(in.answer(result, err))
		}
	}) {
		return
	}
	cancel()
	a.mu.Lock()
	delete(a.open, id)
	a.mu.Unlock()
}

// run runs f behind, unless the session is over or too much runs so already.
func (a *asks) run(f func()) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	select {
	case a.slots <- struct{}{}:
	default:
		return false
	}
	a.work.Go(func() {
		defer func() { <-a.slots }()
		f()
	})
	return true
}

// cancel ends the question with this raw id: the peer took it back.
func (a *asks) cancel(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if q := a.open[string(id)]; q != nil {
		q.withdrawn = true
		q.cancel()
	}
}

// end takes no more questions and ends those that are open; work is to be
// awaited after it.
func (a *asks) end() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.stop()
}

// answer to a request of the peer.
func (m *incoming) answer(result json.RawMessage, err error) []byte {
	var known *wire.Error
	switch {
	case errors.As(err, &known):
		return wire.AppendError(nil, m.id, known)
	case err != nil || !wire.IsObject(result):
		return m.refuse("the client cannot be asked")
	}
	return wire.AppendResult(nil, m.id, result)
}

func (m *incoming) refuse(why string) []byte {
	return wire.AppendError(nil, m.id, &wire.Error{Code: mcp.CodeInternalError, Message: why})
}
