// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// maxParked is how many calls wait for their callers' answers in one replica.
const maxParked = 64

// parking is where calls wait for their callers' answers.
type parking struct {
	patience time.Duration
	gauge    prometheus.Gauge

	mu    sync.Mutex
	calls map[string]*place
}

type place struct {
	call  *parked
	timer *time.Timer
}

func newParking(patience time.Duration, gauge prometheus.Gauge) *parking {
	return &parking{patience: patience, gauge: gauge, calls: map[string]*place{}}
}

// add lets a call wait; false where there is no room.
func (p *parking) add(id string, c *parked) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.calls) >= maxParked {
		return false
	}
	p.calls[id] = &place{call: c, timer: time.AfterFunc(p.patience, func() {
		if p.remove(id) {
			c.cancel(expired())
		}
	})}
	p.gauge.Set(float64(len(p.calls)))
	return true
}

func (p *parking) remove(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	place := p.calls[id]
	if place == nil {
		return false
	}
	place.timer.Stop()
	delete(p.calls, id)
	p.gauge.Set(float64(len(p.calls)))
	return true
}

// callOf tells one call of an upstream from another.
func callOf(c *call.Call, upstream string) string {
	return upstream + "/" + c.Kind.String() + "/" + c.Tool + "/" + c.URI
}

// take gives the call that a retry belongs to; nil when there is none, or it is
// somebody else's or of something else. Each can be taken once. One that ended
// while it waited still has its answer.
func (p *parking) take(retry *call.Call, upstream string) *parked {
	_, id, ours := call.ParkedIn(retry.State)
	if !ours {
		return nil
	}
	p.mu.Lock()
	waiting := p.calls[id]
	p.mu.Unlock()
	if waiting == nil {
		return nil
	}
	who, _ := principalOf(retry)
	if waiting.call.principal != who || waiting.call.of != callOf(retry, upstream) || !p.remove(id) {
		return nil
	}
	return waiting.call
}

// resumed is an upstream as a call sees it whose question was answered.
type resumed struct {
	session
	p *parked
	c *call.Call
}

// Call implements session.
func (r *resumed) Call(ctx context.Context, _ *client.Call) ([]byte, error) {
	return r.p.resume(ctx, r.c)
}

// Request implements session.
func (r *resumed) Request(ctx context.Context, _ *client.Request) ([]byte, error) {
	return r.p.resume(ctx, r.c)
}
