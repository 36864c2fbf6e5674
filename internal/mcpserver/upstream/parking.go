// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
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
			c.cancel(nil)
		}
	})}
	p.gauge.Set(float64(len(p.calls)))
	go func() {
		<-c.done // One that ends while it waits needs no answer any more.
		p.remove(id)
	}()
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

// take gives the call that a retry belongs to; nil when there is none, or it is
// of somebody else's or of something else. Each can be taken once.
func (p *parking) take(retry *call.Call, x *exchange) *parked {
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
	if waiting.call.principal != who || waiting.call.of != x.upstream+"/"+x.of || !p.remove(id) {
		return nil
	}
	return waiting.call
}
