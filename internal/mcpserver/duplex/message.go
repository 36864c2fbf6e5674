// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package duplex

import (
	"context"
	"runtime/debug"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// take deals with one message, or with a batch.
func (c *connection) take(raw []byte) {
	if s := c.session.Load(); s != nil && wire.IsBatch(raw) && s.Version() == mcp.Version20250326 {
		c.takeBatch(raw)
		return
	}
	if r := c.readOne(raw); r != nil {
		c.start(r)
	}
}

// readOne reads a message and gives the request that it is; nil for what was
// dealt with.
func (c *connection) readOne(raw []byte) *engine.Request {
	m := new(wire.Message)
	if err := wire.DecodeMessage(raw, m); err != nil {
		c.send(wire.AppendError(nil, m.ID, err))
		return nil
	}
	switch {
	case m.IsResponse:
		if s := c.session.Load(); s != nil {
			s.Answer(m) // One that comes too late is no error.
		}
		return nil
	case m.Method == mcp.NotificationCancelled && m.ID == nil:
		c.cancel(m.Params.Get("requestId"))
		return nil
	}
	r := &engine.Request{Snapshot: c.host.handler.Snapshot(), Message: m, Streams: true}
	refusal := c.admit(r)
	switch {
	case m.ID == nil && refusal == nil:
		c.host.handler.Handle(c.ctx, r)
		return nil
	case m.ID == nil:
		return nil // Whatever is wrong with it: a notification has no answer.
	case refusal != nil:
		c.send(wire.AppendError(nil, m.ID, refusal))
		return nil
	}
	return r
}

// cancel ends a request that its client gave up. One that is unknown, or
// answered by now, is no error.
func (c *connection) cancel(id []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running[string(id)]; r != nil {
		r.cancel(session.ErrCancelled)
	}
}

// admit finds who sends a request, its era, and what speaks against it from
// the start.
func (c *connection) admit(r *engine.Request) (err *wire.Error) {
	if r.Snapshot == nil {
		return engine.NoCatalog()
	}
	if r.Caller, err = c.options.Caller(r.Snapshot); err != nil {
		return err
	}
	if r.Era, err = engine.EraOf(r.Message); r.Era == engine.Modern {
		if c.options.LegacyOnly {
			return engine.LegacyOnly(r.Message)
		}
		return err
	}
	return c.bind(r)
}

// start runs a request. What opens a session is answered before anything else
// is read.
func (c *connection) start(r *engine.Request) {
	if r.Message.Method == mcp.MethodInitialize && r.Era == engine.Legacy {
		c.initialize(r)
		return
	}
	ctx, refusal := c.enter(r.Message)
	if refusal != nil {
		c.send(wire.AppendError(nil, r.Message.ID, refusal))
		return
	}
	go func() {
		defer c.leave(r.Message.ID)
		s := &stream{connection: c, ctx: ctx}
		if body := c.answer(ctx, r, s); body != nil {
			_ = s.Send(body) // A connection that is gone ends by itself.
		}
	}()
}

// enter notes a request that begins to run.
func (c *connection) enter(m *wire.Message) (context.Context, *wire.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := string(m.ID)
	switch {
	case c.draining:
		return nil, engine.Draining()
	case c.running[id] != nil:
		return nil, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "the id is that of a request which is not answered yet"}
	case len(c.running) >= maxRunning:
		c.host.metrics.Refused(string(call.ConcurrencyLimit))
		return nil, &wire.Error{Code: mcp.CodeTooManyRequests, Message: "too many requests at once on this connection", Data: wire.Data(string(call.ConcurrencyLimit))}
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.running[id] = &running{cancel: cancel, stream: m.Method == mcp.MethodSubscriptionsListen}
	c.calls.Add(1)
	return ctx, nil
}

func (c *connection) leave(id []byte) {
	c.mu.Lock()
	c.running[string(id)].cancel(nil)
	delete(c.running, string(id))
	c.mu.Unlock()
	c.calls.Done()
}

// answer runs a request and gives the answer that is left to send.
func (c *connection) answer(ctx context.Context, r *engine.Request, s *stream) (body []byte) {
	defer func() {
		if p := recover(); p != nil {
			c.host.log.ErrorContext(ctx, "Request panicked", "requestId", r.ID, "stack", string(debug.Stack()))
			body = wire.AppendError(nil, r.Message.ID, &wire.Error{Code: mcp.CodeInternalError, Message: "the request failed"})
		}
	}()
	r.Open = func() (engine.Stream, error) { return s, nil }
	reply := c.host.handler.Handle(ctx, r)
	if reply.Streamed {
		return nil
	}
	return reply.Body
}

// takeBatch answers the batches of revision 2025-03-26, one message after
// another.
func (c *connection) takeBatch(raw []byte) {
	messages, invalid := wire.DecodeBatch(raw)
	if invalid != nil {
		c.send(wire.AppendError(nil, nil, invalid))
		return
	}
	var requests []*engine.Request
	for _, one := range messages {
		if r := c.readOne(one); r != nil {
			requests = append(requests, r)
		}
	}
	if requests == nil || !c.hold() {
		return
	}
	go func() {
		defer c.calls.Done()
		var answers []byte
		for _, r := range requests {
			if body := c.batched(r); body != nil {
				answers = append(append(answers, ','), body...)
			}
		}
		if answers != nil {
			answers[0] = '['
			c.send(append(answers, ']'))
		}
	}()
}

// hold keeps the connection until calls is told that it is done; false when no
// request is taken any more.
func (c *connection) hold() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining {
		return false
	}
	c.calls.Add(1)
	return true
}

func (c *connection) batched(r *engine.Request) []byte {
	if r.Message.Method == mcp.MethodInitialize {
		return wire.AppendError(nil, r.Message.ID, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "initialize cannot stand in a batch"})
	}
	ctx, refusal := c.enter(r.Message)
	if refusal != nil {
		return wire.AppendError(nil, r.Message.ID, refusal)
	}
	defer c.leave(r.Message.ID)
	r.Streams = false // The answer stands in the batch.
	body := c.answer(ctx, r, &stream{connection: c, ctx: ctx})
	if context.Cause(ctx) == session.ErrCancelled { //nolint:errorlint // It is never wrapped.
		return nil
	}
	return body
}

// stream sends the messages of one request over the connection.
type stream struct {
	*connection
	ctx context.Context //nolint:containedctx // It is that of the request.
}

// Send implements engine.Stream. After its client has given a request up
// nothing is said about it any more; one that was cancelled otherwise still
// has an answer.
func (s *stream) Send(message []byte) error {
	if s.connection.ctx.Err() != nil {
		return ErrGone
	}
	if cause := context.Cause(s.ctx); cause == session.ErrCancelled { //nolint:errorlint // It is never wrapped.
		return cause
	}
	s.send(message)
	return nil
}

// KeepAlive implements engine.Stream: the connection itself shows that it
// lives.
func (s *stream) KeepAlive() error { return nil }
