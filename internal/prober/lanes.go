// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"container/heap"
	"time"

	"golang.org/x/time/rate"
)

// The lanes keep what is slow from what is not.
const (
	// laneMain: full probes of targets that did not time out last.
	laneMain = iota
	// laneSlow: full probes of targets that did, and those that have been
	// running for longer than slowAfter.
	laneSlow
	// laneReport: polls of a pod's report while it loads a catalog.
	laneReport
	laneCount
)

var laneNames = [laneCount]string{"main", "slow", "report"}

// lane is a queue by due time with a number of slots and a rate of its own.
type lane struct {
	queue   dueQueue
	slots   int
	inUse   int
	limiter *rate.Limiter
}

func newLane(slots int, perSecond float64) *lane {
	return &lane{slots: slots, limiter: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/10)))}
}

// pop takes the next target that is due and may start now. When none may, it
// says when to look again; zero for "when something changes".
func (l *lane) pop(now time.Time) (t *target, next time.Time) {
	if len(l.queue) == 0 || l.inUse >= l.slots {
		return nil, time.Time{}
	}
	if due := l.queue[0].due; due.After(now) {
		return nil, due
	}
	r := l.limiter.ReserveN(now, 1)
	if delay := r.DelayFrom(now); delay > 0 {
		r.CancelAt(now)
		return nil, now.Add(delay)
	}
	l.inUse++
	return heap.Pop(&l.queue).(*target), time.Time{}
}

// dueQueue is a heap of targets by due time.
type dueQueue []*target

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is heap.Interface's.
func (q *dueQueue) Push(x any) {
	t := x.(*target)
	t.index = len(*q)
	*q = append(*q, t)
}

// Pop is heap.Interface's.
func (q *dueQueue) Pop() any {
	last := len(*q) - 1
	t := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	t.index = -1
	return t
}

// schedule puts t into the lane of what it needs next. A running target is
// scheduled when its probe has ended.
func (p *Prober) schedule(t *target) {
	p.unschedule(t)
	if t.cancel != nil || t.dropped {
		return
	}
	t.due, t.lane = t.next()
	heap.Push(&p.lanes[t.lane].queue, t)
}

func (p *Prober) unschedule(t *target) {
	if t.index >= 0 {
		heap.Remove(&p.lanes[t.lane].queue, t.index)
	}
}
