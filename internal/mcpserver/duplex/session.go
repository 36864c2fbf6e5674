// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package duplex

import (
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// bind gives a legacy request its session. Before that has begun a connection
// takes what begins it, and ping.
func (c *connection) bind(r *engine.Request) *wire.Error {
	s := c.session.Load()
	if s != nil {
		r.Session, r.Calls = s, &s.Calls
	}
	switch {
	case s != nil && s.Version() != "", r.Message.Method == mcp.MethodPing:
	case r.Message.Method != mcp.MethodInitialize:
		return &wire.Error{
			Code: mcp.CodeInvalidRequest,
			Message: "send initialize first, or " + mcp.MetaProtocolVersion + " in _meta with each request as revision " +
				mcp.ModernVersions[0] + " has it",
		}
	case s == nil:
		r.NewSession = func() (*session.Session, error) {
			return c.host.handler.Sessions().Open(r.Caller, string(c.options.Transport))
		}
	}
	return nil
}

// initialize begins the session, and its standing stream: what is said outside
// of answers comes on the same connection.
func (c *connection) initialize(r *engine.Request) {
	if !c.hold() {
		c.send(wire.AppendError(nil, r.Message.ID, engine.Draining()))
		return
	}
	defer c.calls.Done()
	reply := c.host.handler.Handle(c.ctx, r)
	if s := reply.Session; s != nil && c.session.Load() == nil {
		if refused := c.stand(s, r.Caller); refused != nil {
			c.host.handler.Sessions().Remove(s)
			c.send(wire.AppendError(nil, r.Message.ID, &wire.Error{
				Code: mcp.CodeTooManyRequests, Message: "too many open streams on this replica", Data: wire.Data(string(call.StreamLimit)),
			}))
			return
		}
		c.session.Store(s)
	}
	c.send(reply.Body)
}

// stand serves the session's standing stream until the session is over or the
// connection is. It returns when the stream stands, or the refusal.
func (c *connection) stand(s *session.Session, caller *principal.Principal) error {
	if caller == nil {
		caller = principal.Nobody()
	}
	stood := make(chan error, 1)
	c.standing.Go(func() {
		reply := c.host.handler.Stand(c.ctx, s, caller, "", func() (engine.Stream, error) {
			if conn, ok := c.conn.(Opener); ok {
				c.touch(conn.Open)
			}
			stood <- nil
			return &standing{&stream{connection: c, ctx: c.ctx}}, nil
		})
		if !reply.Streamed {
			stood <- &RefusedError{reply}
			return
		}
		close(c.over)
	})
	return <-stood
}

// standing is the stream of what is said outside of answers.
type standing struct{ *stream }

// KeepAlive implements engine.Stream.
func (s *standing) KeepAlive() error {
	if conn, ok := s.conn.(KeepAliver); ok {
		s.touch(conn.KeepAlive)
	}
	return nil
}
