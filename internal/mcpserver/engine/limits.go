// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// limits bound what one replica takes on. Rate and concurrency bound calls;
// lists and handshakes are answered from memory, and a probe that were
// limited would take a busy server for a dead one.
type limits struct {
	metrics     *metrics.Metrics
	rate        atomic.Pointer[rate.Limiter] // nil: no limit
	running     atomic.Int64
	concurrency atomic.Int64
	open        atomic.Int64
	streams     atomic.Int64

	log *slog.Logger
	now func() time.Time
	// rules are replaced as a whole, never changed; nil is none.
	rules atomic.Pointer[[]*limitRule]
	// mu guards what was used of the rules' budgets.
	mu sync.Mutex
}

func newLimits(m *metrics.Metrics, log *slog.Logger) *limits {
	return &limits{metrics: m, log: log, now: time.Now}
}

func (l *limits) configure(c serverconfig.Limits) {
	l.configureRate(rate.Limit(c.RequestsPerSecond), int(max(c.Burst, 1)))
	l.concurrency.Store(int64(c.Concurrency))
	l.streams.Store(int64(c.Streams))
	l.configureRules(c)
}

// configureRate keeps the limiter, and what was used of it, unless it changes.
func (l *limits) configureRate(perSecond rate.Limit, burst int) {
	switch now := l.rate.Load(); {
	case perSecond <= 0:
		l.rate.Store(nil)
	case now == nil || now.Limit() != perSecond || now.Burst() != burst:
		l.rate.Store(rate.NewLimiter(perSecond, burst))
	}
}

// calls is the middleware of rate, concurrency, rules and budgets.
func (l *limits) calls(next call.Func) call.Func {
	return func(ctx context.Context, c *call.Call) (*call.Result, error) {
		if limiter := l.rate.Load(); limiter != nil && !limiter.Allow() {
			return nil, call.Fail(call.RateLimited, "too many requests per second for this replica, try again later")
		}
		running := l.running.Add(1)
		defer l.running.Add(-1)
		if most := l.concurrency.Load(); most > 0 && running > most {
			return nil, call.Fail(call.ConcurrencyLimit, "too many calls at once for this replica, try again later")
		}
		if rules := l.matching(ctx, c); rules != nil {
			if refused := l.spend(rules, c); refused != nil {
				return nil, refused
			}
		}
		l.metrics.InFlight.Inc()
		defer l.metrics.InFlight.Dec()
		return next(ctx, c)
	}
}

// stream takes the place of one stream; done gives it back.
func (l *limits) stream() (done func(), ok bool) {
	open := l.open.Add(1)
	if most := l.streams.Load(); most > 0 && open > most {
		l.open.Add(-1)
		return nil, false
	}
	l.metrics.Streams.Inc()
	return func() {
		l.open.Add(-1)
		l.metrics.Streams.Dec()
	}, true
}
