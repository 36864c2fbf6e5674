// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// parked is a call of a modern caller to a legacy server that may ask. The call
// runs apart from the caller's request: when the server asks, the request is
// answered with the question and the call waits here, for a request that
// brings the answer.
type parked struct {
	m *Manager
	e *exclusive
	// principal who may resume it, and what it is a call of.
	principal, of string
	w             wishes
	cancel        context.CancelCauseFunc
	// asking holds a value when there is a question to put.
	asking chan struct{}
	// done is closed when the call is over, with raw and err.
	done chan struct{}
	raw  []byte
	err  error

	mu sync.Mutex
	// now is the request that waits for the call; nil while it is parked.
	now   *call.Call
	open  []*question
	asked int
}

// question of a server.
type question struct {
	key, method string
	params      json.RawMessage
	answer      chan json.RawMessage
}

// begin begins a call over e, which is given back at its end, and waits for
// its result or a question.
func (s *source) begin(ctx context.Context, c *call.Call, x *exchange, w wishes, e *exclusive) ([]byte, error) {
	x.keep()
	p := &parked{m: s.m, e: e, of: callOf(c, s.config.Name), w: w, asking: make(chan struct{}, 1), done: make(chan struct{})}
	p.principal, _ = principalOf(c)
	release, err := p.e.takeTurn(ctx)
	if err != nil {
		e.pool.release(e, true)
		return nil, err
	}
	defer release()
	life, cancel := context.WithCancelCause(tracing.Carry(s.m.life, ctx))
	p.cancel, p.now = cancel, c
	e.enter(p)
	if !s.m.spawn(func() { p.run(life, x) }) {
		e.leave(p)
		cancel(nil)
		e.pool.release(e, true)
		return nil, unavailable(s.config.Name, nil)
	}
	return p.await(ctx)
}

// run is the call itself.
func (p *parked) run(ctx context.Context, x *exchange) {
	defer close(p.done)
	defer p.cancel(nil)
	p.e.setLevel(ctx, p.w.level)
	p.raw, p.err = x.send(ctx, p.e.session, client.Aside{Progress: p.progress, Notify: p.notify})
	p.e.leave(p)
	p.e.ended(ctx, p.err)
	p.e.pool.release(p.e, p.err == nil || rpcOnly(p.err))
}

// resume goes on with a call whose caller has come back with c.
func (p *parked) resume(ctx context.Context, c *call.Call) ([]byte, error) {
	release, err := p.e.takeTurn(ctx)
	if err != nil {
		p.cancel(err)
		return nil, err
	}
	defer release()
	p.mu.Lock()
	p.now = c
	p.mu.Unlock()
	p.answer(c.Responses)
	return p.await(ctx)
}

// await waits for the result of the call, or for a question, which parks it.
func (p *parked) await(ctx context.Context) ([]byte, error) {
	defer p.quiet()
	for {
		select {
		case <-p.done:
			return p.raw, p.err
		case <-ctx.Done():
			p.cancel(context.Cause(ctx))
			return nil, context.Cause(ctx)
		case <-p.asking:
		}
		select {
		case <-p.done: // It did not wait for an answer.
			return p.raw, p.err
		default:
		}
		if requests := p.questions(); requests != nil {
			return nil, p.park(requests)
		}
	}
}

// quiet tells the caller nothing from now on.
func (p *parked) quiet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = nil
}

// questions are the raw inputRequests of all that is not answered; nil for none.
func (p *parked) questions() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []byte
	for _, q := range p.open {
		request := wire.AppendString([]byte(`{"method":`), q.method)
		if q.params != nil {
			request = wire.AppendField(request, "params", q.params)
		}
		out = addMember(out, q.key, append(request, '}'))
	}
	return braced(out)
}

// park lets the call wait and gives the answer that asks the caller.
func (p *parked) park(requests []byte) error {
	p.quiet()
	id := rand.Text()
	if !p.m.parking.add(id, p) {
		err := call.Fail(call.ConcurrencyLimit, "too many questions wait for an answer here, try again later")
		p.cancel(err)
		return err
	}
	return &askedError{&call.Result{Input: &call.Input{Requests: requests, State: call.ParkedState(p.m.options.Self(), id)}}}
}

// answer hands the caller's answers to the server. What it left open is asked
// once more.
func (p *parked) answer(raw []byte) {
	responses, _ := wire.DecodeObject(raw) // What cannot be read answers nothing.
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(q *question) bool {
		response := responses.Get(q.key)
		if !wire.IsObject(response) {
			return false
		}
		q.answer <- slices.Clone(response)
		return true
	})
	if len(p.open) > 0 {
		p.wake()
	}
}

func (p *parked) wake() {
	select {
	case p.asking <- struct{}{}:
	default:
	}
}

// ask implements asker.
func (p *parked) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !allows(p.w.legacy, method) {
		return nil, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
	}
	q := &question{method: method, params: params, answer: make(chan json.RawMessage, 1)}
	p.mu.Lock()
	p.asked++
	q.key = "q" + strconv.Itoa(p.asked)
	p.open = append(p.open, q)
	p.mu.Unlock()
	p.wake()
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-p.done:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open = slices.DeleteFunc(p.open, func(o *question) bool { return o == q })
	return nil, call.ErrCannotAsk
}

// waiting implements asker.
func (p *parked) waiting() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now == nil
}

// giveUp implements asker.
func (p *parked) giveUp() {
	if p.waiting() {
		p.cancel(expired())
	}
}

// notify implements asker.
func (p *parked) notify(method string, params json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || method == mcp.NotificationMessage && !wants(p.w.level, params) {
		return
	}
	p.now.Client.Notify(method, params)
}

// progress is told to the request that waits now, if it wants to hear of it.
func (p *parked) progress(params wire.Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil && p.now.Progress != nil {
		p.now.Progress(params)
	}
}
