// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Timing of a Manager.
type Timing struct {
	// Health is how often a sign of life is asked for.
	Health time.Duration
	// Handshake bounds connecting, a list and a sign of life.
	Handshake time.Duration
	// Keep is how long tools of a lost upstream stay.
	Keep time.Duration
	// Settle is how long a starting pod waits for upstreams.
	Settle time.Duration
	// Refresh of lists of which no change is told; Seldom of those of which
	// it is.
	Refresh, Seldom time.Duration
	// Again is after how long lists are read again after a change that was
	// told, and then each time after three times as long; never when zero.
	Again time.Duration
	// Backoff between attempts doubles up to MaxBackoff.
	Backoff, MaxBackoff time.Duration
	// Credential is how often mounted credentials are looked at.
	Credential time.Duration
	// Document is how often a document at a URL is asked for; the default
	// when zero.
	Document time.Duration
	// Idle is how long a session for single clients stays that no call uses,
	// Park how long a call waits for its caller's answer. The defaults when 0.
	Idle, Park time.Duration
}

const (
	defaultIdle = 60 * time.Second
	defaultPark = 10 * time.Minute
)

// DefaultTiming is that of the shared server.
func DefaultTiming() Timing {
	return Timing{
		Health: 30 * time.Second, Handshake: 10 * time.Second, Keep: 60 * time.Second, Settle: 30 * time.Second,
		Refresh: 30 * time.Second, Seldom: 5 * time.Minute, Again: 100 * time.Millisecond,
		Backoff: time.Second, MaxBackoff: 30 * time.Second, Credential: 2 * time.Second, Document: 5 * time.Minute,
	}
}

// Options of a Manager.
type Options struct {
	// Client gives the HTTP client for TLS settings; nil is none.
	Client func(*serverconfig.TLS) (*http.Client, error)
	// Authorizer gives what authenticates a connection; nil when it has no
	// auth.
	Authorizer func(*serverconfig.Connection) *outbound.Authorizer
	// Operation makes the handlers of the operations of APIs.
	Operation OperationFactory
	// Credentials are the mounted keys.
	Credentials *credentials.Store
	// Changed is called when what Compose or Report gives may have changed.
	// It must not block.
	Changed func()
	// Updated is called when a resource that is followed may have changed. It
	// must not block.
	Updated func()
	Version string
	Log     *slog.Logger
	// Timing; DefaultTiming when zero.
	Timing Timing
	// Self names this replica to others, see call.ParkedState; nil for one that
	// has no name.
	Self func() string
}

// Manager holds the upstreams of the served catalog.
type Manager struct {
	options Options
	timing  Timing
	log     *slog.Logger
	metrics *metrics
	now     func() time.Time
	parking *parking

	life     context.Context //nolint:containedctx // of all that runs behind
	cancel   context.CancelFunc
	work     sync.WaitGroup
	maxBytes atomic.Int64

	mu      sync.Mutex
	began   time.Time
	settled bool
	order   []string
	sources map[string]*source
	follows map[string]*follows
}

// New gives a manager without upstreams.
func New(options Options) *Manager {
	if options.Timing == (Timing{}) {
		options.Timing = DefaultTiming()
	}
	if options.Timing.Document == 0 {
		options.Timing.Document = DefaultTiming().Document
	}
	m := &Manager{
		options: options, timing: options.Timing, log: options.Log, metrics: newMetrics(), now: time.Now,
		sources: map[string]*source{}, follows: map[string]*follows{},
	}
	m.timing.Idle, m.timing.Park = cmp.Or(m.timing.Idle, defaultIdle), cmp.Or(m.timing.Park, defaultPark)
	if m.options.Self == nil {
		m.options.Self = func() string { return "" }
	}
	m.parking = newParking(m.timing.Park, m.metrics.parked)
	m.maxBytes.Store(defaultMaxBytes)
	m.life, m.cancel = context.WithCancel(context.Background())
	return m
}

// defaultMaxBytes of a message.
const defaultMaxBytes = 10 << 20

// Collectors are the metrics.
func (m *Manager) Collectors() []prometheus.Collector { return m.metrics.all() }

func (m *Manager) changed() { m.options.Changed() }

// Configure begins and ends connections so that they are those of config. One
// whose address, credential and era stay is kept.
func (m *Manager) Configure(config *serverconfig.Config) {
	if n := config.Limits.MaxMessageBytes; n > 0 {
		m.maxBytes.Store(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		return
	}
	if m.began.IsZero() {
		m.began = m.now()
	}
	old := m.sources
	m.sources, m.order = map[string]*source{}, nil
	for _, u := range config.Upstreams {
		m.order = append(m.order, u.Name)
		if s := old[u.Name]; s != nil && sameConnection(&s.config, &u) {
			m.sources[u.Name] = s
			delete(old, u.Name)
			continue
		}
		var before *Listing
		if s := old[u.Name]; s != nil {
			s.mu.Lock()
			before = s.listing
			s.mu.Unlock()
		}
		m.sources[u.Name] = newSource(m, u, before)
	}
	for name, s := range old {
		s.stop()
		if m.sources[name] == nil {
			m.metrics.forget(name)
		}
	}
}

func sameConnection(a, b *serverconfig.Upstream) bool {
	if a.OpenAPI != nil || b.OpenAPI != nil {
		return reflect.DeepEqual(a, b) // Only what is included is made of a document.
	}
	return a.Protocol == b.Protocol && reflect.DeepEqual(a.Connection, b.Connection) && reflect.DeepEqual(a.Stdio, b.Stdio)
}

func (m *Manager) source(name string) *source {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sources[name]
}

func (m *Manager) all() []*source {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*source, 0, len(m.order))
	for _, name := range m.order {
		out = append(out, m.sources[name])
	}
	return out
}

// Listings are what upstreams list, by name, without those that have not
// answered yet or stayed away too long.
func (m *Manager) Listings() map[string]Listing {
	out := map[string]Listing{}
	for _, s := range m.all() {
		s.mu.Lock()
		if s.listing != nil {
			out[s.config.Name] = *s.listing
		}
		s.mu.Unlock()
	}
	return out
}

// Report says how each upstream fares, in the order of the catalog. served
// counts what is served by its source.
func (m *Manager) Report(served map[string]registry.Counts) []podreport.Upstream {
	var out []podreport.Upstream
	for _, s := range m.all() {
		n := served[serverconfig.SourceOf(s.config.Name)]
		s.mu.Lock()
		u := podreport.Upstream{
			Name: s.config.Name, State: s.state, Reason: string(s.reason), Protocol: s.protocol,
			Tools: n.Tools, Resources: n.Resources, Prompts: n.Prompts, Child: s.childState(), Clients: s.pool.size(),
		}
		if s.state == podreport.UpstreamUnavailable && s.failure != nil {
			u.Phase, u.Message, u.Hint = string(s.failure.Phase), s.failure.Message(), s.failure.Hint()
		}
		s.documentState(&u)
		out = append(out, u)
		s.mu.Unlock()
	}
	return out
}

// Settled reports whether each upstream has answered once, or has had time to.
// Once true it stays so.
func (m *Manager) Settled() bool {
	m.mu.Lock()
	done, began := m.settled, m.began
	m.mu.Unlock()
	if done {
		return true
	}
	if began.IsZero() {
		return false
	}
	waited := m.now().Sub(began)
	done = true
	for _, s := range m.all() {
		enough := m.timing.Settle
		if s.config.Stdio != nil {
			enough = time.Duration(s.config.Stdio.StartupTimeoutSeconds) * time.Second
		}
		s.mu.Lock()
		// A child that ends by itself is no longer starting.
		done = done && (s.answered || s.config.Stdio != nil && s.known || waited >= enough)
		s.mu.Unlock()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settled = m.settled || done
	return m.settled
}

// headers of an upstream, with mounted keys read now. credential says that one
// of them is from a Secret or looks like one.
func (m *Manager) headers(values []serverconfig.Value) (header http.Header, credential bool, err error) {
	header = http.Header{}
	for _, v := range values {
		text := ""
		switch {
		case v.File != "":
			credential = true
			if text, err = m.options.Credentials.Text(v.File); err != nil {
				return nil, false, err
			}
		case v.Value != nil:
			text = *v.Value
			name := http.CanonicalHeaderKey(v.Name)
			credential = credential || name == "Authorization" || name == "X-Api-Key" || name == "Cookie"
		}
		header.Set(v.Name, v.Prefix+text)
	}
	return header, credential, nil
}

// fingerprint tells credentials apart. It is kept in memory only.
func (m *Manager) fingerprint(u *serverconfig.Upstream) string {
	if u.OpenAPI != nil {
		return "" // Read anew for each request.
	}
	hash := sha256.New()
	add := func(path string) {
		value, err := m.options.Credentials.Bytes(path)
		if err != nil {
			value = nil
		}
		sum := sha256.Sum256(value)
		hash.Write(sum[:])
	}
	for _, path := range u.Files() {
		add(path)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// retire ends a session behind its last user, or when that takes too long.
func (m *Manager) retire(l *lease) {
	m.work.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		patience := time.NewTimer(m.timing.Seldom)
		defer patience.Stop()
		for waiting := true; waiting && l.users.Load() > 0; {
			select {
			case <-tick.C:
			case <-patience.C:
				waiting = false
			case <-m.life.Done():
				waiting = false
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(m.life), closeTime)
		defer cancel()
		l.Close(ctx)
	})
}

// closeTime is how long the end of a session may take; a child may need some
// of it to end in good order.
const closeTime = 6 * time.Second

// Close ends all connections. It is idempotent.
func (m *Manager) Close() {
	m.mu.Lock()
	m.cancel()
	m.mu.Unlock()
	m.work.Wait()
}

// SessionEnded ends what is held for a client's session.
func (m *Manager) SessionEnded(id string) {
	for _, s := range m.all() {
		s.pool.forget(sessionKey(id))
	}
}

// RootsChanged tells what a client's session has to itself that its roots
// changed.
func (m *Manager) RootsChanged(id string) {
	for _, s := range m.all() {
		s.pool.rootsChanged(sessionKey(id))
	}
}

// spawn runs f as part of what Close awaits; false when that is over.
func (m *Manager) spawn(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.life.Err() != nil {
		return false
	}
	m.work.Go(f)
	return true
}
