// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// source is one upstream: its connection, its list and how it fares. Callers
// share one session per credential.
type source struct {
	config serverconfig.Upstream
	m      *Manager
	log    *slog.Logger
	stop   context.CancelFunc
	poke   chan struct{}
	// authorizer of its requests; nil for none.
	authorizer *outbound.Authorizer
	// pool of sessions for single clients.
	pool *pool

	mu      sync.Mutex
	session *lease
	// fresh is closed when session changes.
	fresh   chan struct{}
	listing *Listing
	state   podreport.UpstreamState
	reason  client.Reason
	// failure that made it unavailable.
	failure  *client.Error
	protocol string
	// answered once; known: it answered, or is known to fail by itself.
	answered, known bool
	expiry          *time.Timer
	// of a child: how the last one ended, and that it ended of discover.
	child      *process.State
	stderrCut  bool
	legacyOnly bool
	// again says why the present child is not the first.
	again client.Reason
}

// lease counts who uses a session, so that it is ended behind the last.
type lease struct {
	session
	credential string
	users      atomic.Int64
	// dead: the server said that it does not know the session.
	dead atomic.Bool
	// levelled: a legacy server was told what all callers want logged.
	levelled sync.Once
}

// newSource begins to connect. before is what was listed over another
// connection; it stays until the new one stands, or for a while.
func newSource(m *Manager, config serverconfig.Upstream, before *Listing) *source {
	s := &source{
		config: config, m: m, log: m.log.With("upstream", config.Name), poke: make(chan struct{}, 1),
		fresh: make(chan struct{}), state: podreport.UpstreamPending,
	}
	if m.options.Authorizer != nil {
		connection := config.Connection
		if config.OpenAPI != nil && connection.URL == "" {
			connection.URL = config.OpenAPI.DocumentURL
		}
		s.authorizer = m.options.Authorizer(&connection)
	}
	ctx, cancel := context.WithCancel(m.life)
	s.stop = cancel
	s.pool = newPool(s)
	if before != nil {
		s.listing = before
		s.expiry = time.AfterFunc(m.timing.Keep, s.withdraw)
	}
	m.work.Go(func() { s.run(ctx) })
	return s
}

// run connects, and connects again, until ctx ends.
func (s *source) run(ctx context.Context) {
	backoff := s.m.timing.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		session, listing, err := s.connect(ctx)
		if err == nil {
			s.up(session, listing)
			if err = s.watch(ctx, session); errors.Is(err, errCredential) {
				continue // The old session serves until the new one stands.
			}
			if ctx.Err() == nil {
				s.endChild(session, err)
			}
			// Only when it cannot be connected again is it lost.
			if time.Since(began) > s.m.timing.MaxBackoff {
				backoff = s.m.timing.Backoff
				continue
			}
		} else if ctx.Err() == nil {
			s.lost(err)
		}
		// Half of the wait is chance, so that replicas do not come at once.
		s.pause(ctx, backoff/2+rand.N(backoff/2+1)) //nolint:gosec // jitter, no secret
		backoff = min(2*backoff, s.m.timing.MaxBackoff)
	}
	s.replace(nil)
	s.pool.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.expiry != nil {
		s.expiry.Stop()
	}
}

func (s *source) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// connect opens a session and reads the list.
func (s *source) connect(ctx context.Context) (*lease, *Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	opened, err := s.open(ctx)
	if err != nil {
		s.diedOf(err)
		return nil, nil, err
	}
	l := &lease{session: opened, credential: s.m.fingerprint(&s.config)}
	listing, err := s.list(ctx, l)
	if err != nil {
		s.m.retire(l)
		return nil, nil, err
	}
	return l, listing, nil
}

// dial fills options for a connection over HTTP, with the keys that are
// mounted now; caller, if there is one, is whose session it is.
func (s *source) dial(options *client.Options, caller *principal.Principal) (err error) {
	if options.Header, options.Credential, err = s.m.headers(s.config.Headers); err != nil {
		return err
	}
	options.Credential = options.Credential || s.config.TLS != nil && s.config.TLS.CertFile != ""
	if options.HTTP, err = s.m.options.Client(s.config.TLS); err != nil {
		return err
	}
	options.Credential = options.Credential || s.authorizer != nil
	options.HTTP = s.authorizer.Client(options.HTTP, caller)
	return nil
}

func (s *source) list(ctx context.Context, l *lease) (*Listing, error) {
	lists, err := l.Lists(ctx)
	if err != nil {
		return nil, err
	}
	listing := &Listing{Lists: lists, Can: l.Abilities()}
	if w, ok := l.session.(watched); ok {
		listing.Left = w.Left()
	}
	return listing, nil
}

// up puts a session in place.
func (s *source) up(l *lease, listing *Listing) {
	s.replace(l)
	s.mu.Lock()
	was := s.state
	s.state, s.reason, s.protocol = podreport.UpstreamReady, "", l.Version()
	if s.expiry != nil {
		s.expiry.Stop()
		s.expiry = nil
	}
	s.mu.Unlock()
	s.take(listing)
	s.mu.Lock()
	s.answered, s.known = true, true // Only now: its entries can be served.
	s.mu.Unlock()
	s.m.metrics.up(s.config.Name, true)
	if was != podreport.UpstreamReady {
		s.log.Info("Upstream is ready", "protocol", l.Version(), "tools", len(listing.Tools),
			"resources", len(listing.Resources), "templates", len(listing.Templates), "prompts", len(listing.Prompts))
		s.m.changed()
	}
}

// take puts a list in place and tells when it differs.
func (s *source) take(listing *Listing) {
	s.mu.Lock()
	before := s.listing
	listing.keep(before)
	same := before != nil && before.equal(listing)
	s.listing = listing
	s.mu.Unlock()
	if len(listing.Failed) > 0 && (before == nil || !slices.Equal(before.Failed, listing.Failed)) {
		s.log.Warn("Lists of an upstream cannot be read, what was known of them stays", "methods", listing.Failed)
	}
	if !same {
		s.m.changed()
	}
}

// lost says that the upstream does not answer. What it brought is withdrawn
// when that lasts.
func (s *source) lost(err error) {
	s.replace(nil)
	s.mu.Lock()
	reason := client.ReasonOf(err)
	news := s.state != podreport.UpstreamUnavailable || s.reason != reason
	if s.listing != nil && s.expiry == nil {
		s.expiry = time.AfterFunc(s.m.timing.Keep, s.withdraw)
	}
	s.state, s.reason, s.protocol = podreport.UpstreamUnavailable, reason, ""
	s.failure = client.ErrorOf(err)
	s.mu.Unlock()
	s.m.metrics.up(s.config.Name, false)
	if news {
		s.log.Warn("Upstream does not answer", "reason", string(reason), "cause", causeOf(err))
		s.m.changed()
	}
}

func (s *source) withdraw() {
	s.mu.Lock()
	gone := s.state != podreport.UpstreamReady
	if gone {
		s.listing = nil
	}
	s.mu.Unlock()
	if gone {
		s.log.Warn("Upstream stayed away, what it brought is withdrawn")
		s.m.changed()
	}
}

// causeOf is what the log says of err: never the peer's words.
func causeOf(err error) string {
	var known *client.Error
	if errors.As(err, &known) && known.Cause != nil {
		return known.Error() + ": " + known.Cause.Error()
	}
	return err.Error()
}

// replace puts l, which may be nil, in place of the session there is; that one
// is ended behind its last user.
func (s *source) replace(l *lease) {
	s.mu.Lock()
	old := s.session
	s.session = l
	close(s.fresh)
	s.fresh = make(chan struct{})
	s.mu.Unlock()
	if old != nil && old != l {
		if s.config.Stdio == nil {
			s.pool.flush() // They are of the same credential and server.
		}
		s.m.retire(old)
	}
}

// use gives the session, if there is one; done must be called after it.
func (s *source) use() (l *lease, done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == nil {
		return nil, nil, false
	}
	l = s.session
	l.users.Add(1)
	return l, func() { l.users.Add(-1) }, true
}

// after waits until another session than old is in place.
func (s *source) after(ctx context.Context, old *lease) bool {
	ctx, cancel := context.WithTimeout(ctx, s.m.timing.Handshake)
	defer cancel()
	for {
		s.mu.Lock()
		now, fresh := s.session, s.fresh
		s.mu.Unlock()
		if now != nil && now != old {
			return true
		}
		select {
		case <-fresh:
		case <-ctx.Done():
			return false
		}
	}
}

// suspect has the session looked at now.
func (s *source) suspect() {
	select {
	case s.poke <- struct{}{}:
	default:
	}
}
