// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// open opens a link. others takes what comes on it and belongs to no request.
func (b *bridge) open(ctx context.Context, others take) (link, *fault) {
	way, err := b.o.Open(ctx)
	if err != nil {
		return nil, noReplica(err)
	}
	switch way.Transport {
	case StreamableHTTP:
		return newHTTP(b.o, way, b.mirror), nil
	case SSE:
		return openSSE(ctx, b.o, way, others)
	case WebSocket:
		return openWebSocket(ctx, b.o, way, others)
	}
	return nil, &fault{kind: refused, code: mcp.CodeInternalError, reason: "TransportUnknown", text: "the transport " + string(way.Transport) + " cannot be carried"}
}

// openSession opens a link that is a session's.
func (b *bridge) openSession(ctx context.Context) (*session, *fault) {
	s := &session{}
	s.life, s.end = context.WithCancel(b.life)
	l, f := b.open(ctx, b.pass(s))
	if f != nil {
		s.end()
		return nil, f
	}
	s.link = l
	return s, nil
}

// shake opens a session by the client's own initialize. What the server
// answers goes to to; the session is nil when that is no agreement.
func (b *bridge) shake(ctx, patience context.Context, hello *message, to func(*session, packet)) (s *session, capabilities []byte, f *fault) {
	s, f = b.openSession(patience)
	if f != nil {
		return nil, nil, f
	}
	l := s.link
	version := ""
	m, _ := read(hello.raw) // It counts its answers anew.
	f = l.exchange(ctx, patience, m, func(p packet) {
		if in := &p.parts[0]; in.isAnswer() {
			if result, err := wire.DecodeObject(in.result); err == nil {
				version, _ = result.Text("protocolVersion")
				capabilities = result.Get("capabilities")
			}
		}
		to(s, p)
	})
	if f != nil || version == "" {
		s.end()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		l.close(closing)
		return nil, nil, f
	}
	l.agree(version)
	return s, capabilities, nil
}

// initialize carries the client's initialize and remembers it.
func (b *bridge) initialize(ctx context.Context, m *message) *fault {
	if !b.legacy.takeTurn(ctx) {
		return nil
	}
	defer b.legacy.endTurn()
	if old := b.legacy.live(); old != nil {
		old.end()
		old.link.close(ctx)
	}
	return b.persist(ctx, m, func(patience context.Context) *fault {
		s, capabilities, f := b.shake(ctx, patience, m, func(s *session, p packet) {
			m.settle(p)
			b.pass(s)(p)
		})
		b.legacy.mu.Lock()
		defer b.legacy.mu.Unlock()
		b.legacy.current = s
		if s != nil {
			b.legacy.hello, b.legacy.declared = m, capabilities
		}
		return f
	})
}

// initialized carries the client's notification that the handshake is over.
// From then on the server may speak by itself.
func (b *bridge) initialized(m *message) {
	b.legacy.mu.Lock()
	begun := b.legacy.begun
	greeted := make(chan struct{})
	b.legacy.done, b.legacy.greeted = m, greeted
	b.legacy.mu.Unlock()
	b.work.Go(func() {
		defer close(greeted)
		if begun != nil && await(b.life, []<-chan struct{}{begun}) != nil {
			return
		}
		s := b.legacy.live()
		if s == nil {
			return // There was no agreement, or the next request makes a new one.
		}
		if f := s.link.say(b.life, m); f != nil {
			b.o.Log.Warn("The handshake was not finished", "error", f)
			if f.kind != refused {
				b.lose(s)
				return
			}
		}
		b.stand(s)
	})
}

// stand hears what the server says by itself for as long as the session lasts,
// and opens a new one when that ends.
func (b *bridge) stand(s *session) {
	b.behind.Go(func() {
		f := s.link.stand(s.life, b.pass(s))
		if f == nil || s.lost() {
			return
		}
		b.lose(s)
		for try := 0; b.life.Err() == nil; try++ {
			_, f := b.renew(b.life)
			switch {
			case f == nil:
				return
			case f.kind == refused:
				b.o.Log.Warn("The session was lost and cannot be opened again; the next request tries anew", "error", f)
				return
			}
			b.o.Log.Debug("The session cannot be opened again now", "error", f)
			pause(b.life, backoff(try))
		}
	})
}

// lose gives a session up. Questions that it asked need no answer any more.
func (b *bridge) lose(s *session) {
	if s.lost() {
		return
	}
	s.end()
	s.link.drop()
	b.o.Log.Info("The session was lost: the server was restarted, or has ended it")
	for _, id := range b.legacy.orphans(s) {
		params := append([]byte(`"requestId":`), id...)
		b.write(notification(mcp.NotificationCancelled, wire.AppendField(params, "reason", []byte(`"the server was restarted"`))))
	}
}

func (g *legacy) takeTurn(ctx context.Context) bool {
	select {
	case g.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (g *legacy) endTurn() { <-g.turn }

// renew opens a session in place of one that was lost, as the client did, and
// sets what the client had set. One does so for all.
func (b *bridge) renew(ctx context.Context) (*session, *fault) {
	if !b.legacy.takeTurn(ctx) {
		return nil, noReplica(errors.New("no new session came about in time"))
	}
	defer b.legacy.endTurn()
	if s := b.legacy.live(); s != nil {
		return s, nil
	}
	hello, done, set, declared := b.legacy.known()
	if hello == nil {
		return nil, sessionGone() // The client begins anew itself.
	}
	s, _, f := b.shake(ctx, ctx, hello, func(s *session, p packet) {
		if !p.parts[0].isAnswer() {
			b.pass(s)(p)
		}
	})
	if f != nil {
		return nil, f
	}
	if s == nil {
		return nil, &fault{kind: refused, code: mcp.CodeInternalError, reason: "HandshakeRefused", text: "the session was lost, and the MCP server does not take the client's initialize a second time"}
	}
	if f := b.restore(ctx, s, done, set); f != nil {
		s.end()
		return nil, f
	}
	b.legacy.mu.Lock()
	b.legacy.current = s
	b.legacy.mu.Unlock()
	b.o.Log.Info("A new session was opened in place of the lost one")
	if done != nil {
		b.stand(s)
	}
	for _, line := range changed(declared, set) {
		b.write(line)
	}
	return s, nil
}

// restore finishes the handshake and sets what was set. That the server does
// not take a setting any more is no reason to go without a session.
func (b *bridge) restore(ctx context.Context, s *session, done *message, set []*message) *fault {
	if done != nil {
		if f := s.link.say(ctx, done); f != nil && f.kind != refused {
			return f
		}
	}
	for _, one := range set {
		m, _ := read(one.raw)
		f := s.link.exchange(ctx, ctx, m, func(p packet) {
			if !p.parts[0].isAnswer() {
				b.pass(s)(p)
			}
		})
		switch {
		case f == nil:
		case f.kind == refused:
			b.o.Log.Warn("The new session refuses what the client had set", "method", m.Method, "error", f)
		default:
			return f
		}
	}
	return nil
}
