// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

const (
	// slowAfter is when a running probe moves to the slow lane.
	slowAfter = time.Second
	// scanPeriod is how often lag is looked for.
	scanPeriod = 5 * time.Second
)

// loop starts what is due until ctx ends.
func (p *Prober) loop(ctx context.Context) {
	scan := p.clock.NewTicker(scanPeriod)
	defer scan.Stop()
	for p.waitTurn(ctx, p.startDue(ctx), scan.C()) {
	}
}

// waitTurn waits until there may be something to start: at next when that is
// not zero, or when something changed. It says false when ctx has ended.
func (p *Prober) waitTurn(ctx context.Context, next time.Time, scan <-chan time.Time) bool {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := p.clock.NewTimer(max(0, next.Sub(p.clock.Now())))
		defer timer.Stop()
		due = timer.C()
	}
	select {
	case <-ctx.Done():
		return false
	case <-due:
	case <-p.kick:
	case <-scan:
		p.scanLag()
	}
	return ctx.Err() == nil
}

// startDue starts all that is due and says when the next one will be.
func (p *Prober) startDue(ctx context.Context) (next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.beat = now
	for index, l := range p.lanes {
		for {
			t, at := l.pop(now)
			if t == nil {
				if !at.IsZero() && (next.IsZero() || at.Before(next)) {
					next = at
				}
				break
			}
			p.start(ctx, t, index, now)
		}
	}
	return next
}

// run is one probe under way.
type run struct {
	target *target
	// lane whose slot it holds; it may move from main to slow.
	lane       int
	reportOnly bool
	began      time.Time
}

// start begins a probe of t in the lane it was popped from.
func (p *Prober) start(ctx context.Context, t *target, laneIndex int, now time.Time) {
	o := p.objects[t.key]
	r := &run{target: t, lane: laneIndex, reportOnly: laneIndex == laneReport, began: now}
	probe := t.probe(o.spec, r.reportOnly, now)
	probeCtx, cancel := context.WithCancel(ctx)
	t.cancel = cancel
	p.running.Add(1)
	go func() {
		defer p.running.Done()
		defer cancel()
		finished := make(chan struct{})
		if laneIndex == laneMain {
			p.running.Add(1)
			go p.giveWay(r, finished)
		}
		report := p.probe(probeCtx, r, probe)
		close(finished)
		p.finish(r, report)
	}()
}

// giveWay moves a run that takes long to the slow lane, if that has room, so
// that its slot serves others.
func (p *Prober) giveWay(r *run, finished <-chan struct{}) {
	defer p.running.Done()
	timer := p.clock.NewTimer(slowAfter)
	defer timer.Stop()
	select {
	case <-finished:
		return
	case <-timer.C():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-finished:
		return
	default:
	}
	if slow := p.lanes[laneSlow]; r.lane == laneMain && slow.inUse < slow.slots {
		p.lanes[laneMain].inUse--
		slow.inUse++
		r.lane = laneSlow
		p.nudge()
	}
}

// finish takes in a report and plans the target's next probe.
func (p *Prober) finish(r *run, report mcpprobe.Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	t := r.target
	p.lanes[r.lane].inUse--
	defer p.nudge()
	t.cancel = nil
	o := p.objects[t.key]
	if t.dropped || o == nil {
		return
	}
	if report.Outcome != mcpprobe.Canceled {
		p.metrics.probed(r, report, now.Sub(r.began))
		before := t.facts
		t.take(o.spec, report, r.reportOnly, r.began, now, p.opts.Jitter)
		if t.facts != before {
			p.wake.add(t.key)
		}
	}
	p.schedule(t)
}

// scanLag wakes the objects that began or ceased to lag, and frees what is
// stuck behind polls.
func (p *Prober) scanLag() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for _, o := range p.objects {
		lagging := false
		for _, t := range o.targets {
			lagging = lagging || t.lagging(o.spec, now)
			if t.lane == laneReport && t.index >= 0 && !t.fullDue.After(now) {
				// Polls wait for each other; a full probe must not wait for them.
				t.pollDue = t.fullDue
				p.schedule(t)
			}
		}
		if lagging != o.lagging {
			o.lagging = lagging
			p.wake.add(o.key)
		}
	}
}
