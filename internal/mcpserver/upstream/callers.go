// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

const (
	// maxCallers of an upstream have a session of their own at a time.
	maxCallers = 100
	// callerIdle is how long such a session stays without a call.
	callerIdle = 5 * time.Minute
)

// callers are the sessions of an upstream that are one caller's. A session of
// the legacy era belongs to who opened it, so where calls carry tokens of
// their callers it cannot be shared; the modern era knows none.
type callers struct {
	mu       sync.Mutex
	sessions map[string]*callerSession
}

// callerSession is one, from the moment that somebody wants it.
type callerSession struct {
	// ready is closed when lease or err is set.
	ready chan struct{}
	lease *lease
	err   error

	used time.Time   // guarded by callers.mu
	idle *time.Timer // likewise; nil until it is ready
}

// onBehalf is a session whose calls carry the token of their caller.
type onBehalf struct {
	session
	caller *principal.Principal
}

// Call implements session.
func (o onBehalf) Call(ctx context.Context, c *client.Call) ([]byte, error) {
	return o.session.Call(outbound.WithCaller(ctx, o.caller), c)
}

// Request implements session.
func (o onBehalf) Request(ctx context.Context, r *client.Request) ([]byte, error) {
	return o.session.Request(outbound.WithCaller(ctx, o.caller), r)
}

// useFor gives the session for a call of caller: the shared one, or the
// caller's own. done must be called after it; a nil lease says that the
// upstream does not answer.
func (s *source) useFor(ctx context.Context, caller *principal.Principal) (l *lease, speak session, done func(), err error) {
	l, done, ok := s.use()
	if !ok {
		return nil, nil, nil, nil
	}
	if !s.authorizer.Exchanges() {
		return l, l.session, done, nil
	}
	if mcp.IsLegacy(l.Version()) {
		done()
		if l, done, err = s.own(ctx, caller); err != nil {
			return nil, nil, nil, err
		}
	}
	return l, onBehalf{l.session, caller}, done, nil
}

// own gives the caller's own session, and opens it if there is none.
func (s *source) own(ctx context.Context, caller *principal.Principal) (*lease, func(), error) {
	key := caller.Key()
	for {
		s.callers.mu.Lock()
		known := s.callers.sessions[key]
		if known == nil {
			known = &callerSession{ready: make(chan struct{})}
			if !s.m.start(func() { s.openOwn(key, caller, known) }) {
				s.callers.mu.Unlock()
				return nil, nil, &client.Error{Reason: client.ConnectionLost}
			}
			s.callers.add(key, known, s.m.retire)
		}
		known.used = time.Now()
		if known.idle != nil {
			known.idle.Reset(callerIdle)
		}
		s.callers.mu.Unlock()
		select {
		case <-known.ready:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		if known.err != nil {
			return nil, nil, known.err
		}
		known.lease.users.Add(1)
		if !known.lease.dead.Load() {
			return known.lease, func() { known.lease.users.Add(-1) }, nil
		}
		known.lease.users.Add(-1)
		s.forget(known.lease)
	}
}

// openOwn opens a session. What waits for it is told how that ended.
func (s *source) openOwn(key string, caller *principal.Principal, c *callerSession) {
	ctx, cancel := context.WithTimeout(s.m.life, s.m.timing.Handshake)
	defer cancel()
	opened, err := s.openFor(ctx, caller)
	s.callers.mu.Lock()
	defer s.callers.mu.Unlock()
	defer close(c.ready)
	if err != nil {
		c.err = err
		if s.callers.sessions[key] == c {
			delete(s.callers.sessions, key)
		}
		return
	}
	c.lease = &lease{session: opened}
	if s.callers.sessions[key] != c { // It had to make room meanwhile.
		c.lease.dead.Store(true)
		s.m.retire(c.lease)
		return
	}
	c.idle = time.AfterFunc(callerIdle, func() { s.forgetIdle(key, c) })
}

// add notes a session; the one that was used longest ago makes room. callers.mu
// is held.
func (c *callers) add(key string, added *callerSession, retire func(*lease)) {
	if c.sessions == nil {
		c.sessions = map[string]*callerSession{}
	}
	if len(c.sessions) >= maxCallers {
		oldest := ""
		for name, known := range c.sessions {
			if oldest == "" || known.used.Before(c.sessions[oldest].used) {
				oldest = name
			}
		}
		c.remove(oldest, retire)
	}
	c.sessions[key] = added
}

// remove drops a session and ends it behind its last user. callers.mu is held.
func (c *callers) remove(key string, retire func(*lease)) {
	known := c.sessions[key]
	delete(c.sessions, key)
	if known == nil || known.lease == nil {
		return // It is not open yet, and ends when it is.
	}
	known.idle.Stop()
	known.lease.dead.Store(true)
	retire(known.lease)
}

// forget drops a session that the upstream does not know, or does not answer.
func (s *source) forget(l *lease) {
	s.callers.mu.Lock()
	defer s.callers.mu.Unlock()
	for key, known := range s.callers.sessions {
		if known.lease == l {
			s.callers.remove(key, s.m.retire)
		}
	}
}

// forgetIdle drops a session that nobody used for a while.
func (s *source) forgetIdle(key string, c *callerSession) {
	s.callers.mu.Lock()
	defer s.callers.mu.Unlock()
	switch {
	case s.callers.sessions[key] != c:
	case c.lease.users.Load() > 0:
		c.idle.Reset(callerIdle)
	default:
		s.callers.remove(key, s.m.retire)
	}
}

// forgetAll drops all sessions: the connection they were made with is another
// one now.
func (s *source) forgetAll() {
	s.callers.mu.Lock()
	defer s.callers.mu.Unlock()
	for key := range s.callers.sessions {
		s.callers.remove(key, s.m.retire)
	}
}
