// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// maxSubscribed is how many subscriptions are remembered for a new session.
const maxSubscribed = 1024

// legacy is what the client did by the rules of the legacy era, and the
// session that stands for it at the server.
type legacy struct {
	mu sync.Mutex
	// hello is the client's initialize, done its notifications/initialized;
	// nil until it sent them.
	hello, done *message
	// begun and greeted are closed when those have been dealt with; nil until
	// they came.
	begun, greeted chan struct{}
	// declared are the capabilities in the answer to hello, raw: what the
	// client knows of.
	declared []byte
	// current is nil until the handshake succeeded.
	current *session
	// level and subscribed are what the client set, as the requests by which
	// it did.
	level      *message
	subscribed map[string]*message
	// asks are the questions that the client was asked, by raw id.
	asks map[string]*session

	// turn is taken by who opens a session.
	turn chan struct{}
	// bare serves a client that never shook hands.
	bare *session
}

// session is one session of the legacy era.
type session struct {
	link link
	// life ends when the session is lost or closed.
	life context.Context //nolint:containedctx // of its standing stream
	end  context.CancelFunc
}

// lost reports whether the session is no more.
func (s *session) lost() bool { return s.life.Err() != nil }

// gates are what must have been dealt with before a message that comes now.
func (g *legacy) gates() []<-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []<-chan struct{}
	if g.begun != nil {
		out = append(out, g.begun)
	}
	if g.greeted != nil {
		out = append(out, g.greeted)
	}
	return out
}

// begin notes an initialize; what it gives is to be closed when that is
// answered. A second one begins anew.
func (g *legacy) begin() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.begun, g.greeted = make(chan struct{}), nil
	g.hello, g.done, g.level, g.subscribed = nil, nil, nil, nil
	return g.begun
}

func (g *legacy) hasBegun() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun != nil
}

// live gives the session that is, nil for none.
func (g *legacy) live() *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil || g.current.lost() {
		return nil
	}
	return g.current
}

// get gives the session for a message: a new one where it was lost.
func (g *legacy) get(ctx context.Context, b *bridge) (*session, *fault) {
	g.mu.Lock()
	s, hello, bare := g.current, g.hello, g.bare
	g.mu.Unlock()
	switch {
	case s != nil && !s.lost():
		return s, nil
	case hello != nil && s != nil:
		return b.renew(ctx)
	case bare != nil && !bare.lost():
		return bare, nil
	}
	// The client has not shaken hands, or in vain: the server has its say.
	s, f := b.openSession(ctx)
	if f != nil {
		return nil, f
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bare = s
	return s, nil
}

// asked notes a question of the server.
func (g *legacy) asked(id []byte, s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.asks == nil {
		g.asks = map[string]*session{}
	}
	if len(g.asks) < maxRunning {
		g.asks[string(id)] = s
	}
}

// asker gives the session whose question an answer is for, nil when it is no
// more. It is asked once.
func (g *legacy) asker(id []byte) *session {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.asks[string(id)]
	delete(g.asks, string(id))
	if s == nil || s.lost() {
		return nil
	}
	return s
}

// orphans gives the ids of the questions of a session that is lost, and
// forgets them.
func (g *legacy) orphans(s *session) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []string
	for id, of := range g.asks {
		if of == s {
			out = append(out, id)
			delete(g.asks, id)
		}
	}
	slices.Sort(out)
	return out
}

// remembering gives a take that notes what m set when the server agreed.
func (g *legacy) remembering(m *message, to take) take {
	uri, _ := m.Params.Text("uri")
	return func(p packet) {
		if in := &p.parts[0]; in.result != nil && !m.batch && sameID(in.id, m.ID) {
			g.note(m, uri)
		}
		to(p)
	}
}

func (g *legacy) note(m *message, uri string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m.Method {
	case mcp.MethodSetLevel:
		g.level = m
	case mcp.MethodSubscribe:
		if g.subscribed == nil {
			g.subscribed = map[string]*message{}
		}
		if len(g.subscribed) < maxSubscribed {
			g.subscribed[uri] = m
		}
	case mcp.MethodUnsubscribe:
		delete(g.subscribed, uri)
	}
}

// known is what a new session must be told.
func (g *legacy) known() (hello, done *message, set []*message, declared []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.level != nil {
		set = append(set, g.level)
	}
	for _, uri := range slices.Sorted(maps.Keys(g.subscribed)) {
		set = append(set, g.subscribed[uri])
	}
	return g.hello, g.done, set, g.declared
}

// close ends the session.
func (g *legacy) close(ctx context.Context) {
	g.mu.Lock()
	s, bare := g.current, g.bare
	g.mu.Unlock()
	for _, s := range []*session{s, bare} {
		if s != nil {
			s.end()
			s.link.close(ctx)
		}
	}
}

// changed are the notifications that tell of what a new server may have
// otherwise, as far as both sides agreed that such come.
func changed(declared []byte, subscribed []*message) [][]byte {
	capabilities, err := wire.DecodeObject(declared)
	if err != nil {
		return nil
	}
	var out [][]byte
	for _, n := range []struct{ key, method string }{
		{"tools", mcp.NotificationToolsChanged}, {"resources", mcp.NotificationResources}, {"prompts", mcp.NotificationPrompts},
	} {
		if list, err := wire.DecodeObject(capabilities.Get(n.key)); err == nil && string(list.Get("listChanged")) == "true" {
			out = append(out, notification(n.method, nil))
		}
	}
	for _, m := range subscribed {
		if m.Method == mcp.MethodSubscribe {
			out = append(out, notification(mcp.NotificationUpdated, append([]byte(`"uri":`), m.Params.Get("uri")...)))
		}
	}
	return out
}
