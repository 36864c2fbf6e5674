// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// maxExclusive is how many sessions over HTTP an upstream has for single
// clients, beside the one that all share: calls that wait for their callers
// leave as many to others.
const maxExclusive = 2 * maxParked

// pool holds the exclusive sessions of one upstream.
type pool struct {
	s   *source
	max int
	// rest is how long one stays that no call uses.
	rest time.Duration

	mu     sync.Mutex
	closed bool
	// all that calls may use; the one used last is last.
	all []*exclusive
	// alive are all that have not ended yet; freed is closed when one has.
	alive map[*exclusive]bool
	freed chan struct{}
}

func newPool(s *source) *pool {
	p := &pool{s: s, max: maxExclusive, rest: s.m.timing.Idle, alive: map[*exclusive]bool{}, freed: make(chan struct{})}
	if child := s.config.Stdio; child != nil && child.PerClient {
		p.max, p.rest = int(child.MaxProcesses), time.Duration(child.IdleSeconds)*time.Second
	}
	return p
}

// take gives a session that is like e, or opens e. The call must give it back
// by release. modern is the era that the upstream speaks.
func (p *pool) take(ctx context.Context, e *exclusive, modern bool) (*exclusive, error) {
	for {
		found, wait, err := p.reserve(e, modern)
		if err != nil {
			return nil, err
		}
		if found == nil {
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		select {
		case <-found.opened:
			if found.err != nil {
				p.release(found, false)
				return nil, found.err
			}
			return found, nil
		case <-ctx.Done():
			p.release(found, true)
			return nil, context.Cause(ctx)
		}
	}
}

// reserve finds a session like e, or begins to open e. When there is no room
// but soon will be, wait is closed then.
func (p *pool) reserve(e *exclusive, modern bool) (found *exclusive, wait <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, unavailable(p.s.config.Name, nil)
	}
	for i, other := range slices.Backward(p.all) {
		if other.key == e.key && (!other.solo || other.users == 0 && bytes.Equal(other.capabilities, e.capabilities)) {
			p.all = append(slices.Delete(p.all, i, i+1), other)
			p.use(other)
			return other, nil, nil
		}
	}
	if len(p.alive) >= p.max {
		idle := slices.IndexFunc(p.all, func(e *exclusive) bool { return e.users == 0 })
		if idle >= 0 {
			p.drop(p.all[idle])
		}
		if len(p.alive) == len(p.all) {
			return nil, nil, p.busy()
		}
		return nil, p.freed, nil
	}
	e.pool, e.opened, e.over = p, make(chan struct{}), make(chan struct{})
	p.use(e)
	if !p.s.m.spawn(func() { p.keep(e, modern) }) {
		return nil, nil, unavailable(p.s.config.Name, nil)
	}
	p.all = append(p.all, e)
	p.alive[e] = true
	p.s.m.metrics.exclusive.WithLabelValues(p.s.config.Name).Set(float64(len(p.alive)))
	return e, nil, nil
}

// use counts one more call. It is called with the lock held.
func (p *pool) use(e *exclusive) {
	e.users++
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
}

// release gives a session back. One for one call at a time that did not end
// well is not used again: what the server may still say belongs to nobody.
func (p *pool) release(e *exclusive, well bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.users--
	if e.solo && !well {
		p.drop(e)
	}
	switch {
	case e.users > 0:
	case e.dropped:
		p.end(e)
	default:
		e.idle = time.AfterFunc(p.rest, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if e.users == 0 {
				p.drop(e)
			}
		})
	}
}

// drop lets no further call use e, and ends it behind the last. It is called
// with the lock held.
func (p *pool) drop(e *exclusive) {
	if e.dropped {
		return
	}
	e.dropped = true
	p.all = slices.DeleteFunc(p.all, func(o *exclusive) bool { return o == e })
	if e.users == 0 {
		p.end(e)
	}
}

// end ends e. It is called with the lock held.
func (p *pool) end(e *exclusive) {
	if e.idle != nil {
		e.idle.Stop()
		e.idle = nil
	}
	select {
	case <-e.over:
	default:
		close(e.over)
	}
}

// keep opens a session and ends it when it is over.
func (p *pool) keep(e *exclusive, modern bool) {
	ctx, cancel := context.WithCancel(p.s.m.life)
	defer cancel()
	defer p.gone(e)
	var work sync.WaitGroup
	e.err = e.connect(ctx, modern)
	if e.err != nil {
		p.lose(e)
		close(e.opened)
		return
	}
	if e.solo {
		e.listen(ctx, &work)
	}
	close(e.opened)
	select {
	case <-e.over:
	case <-e.session.Done():
		p.lose(e)
	case <-ctx.Done():
		p.lose(e)
	}
	cancel()
	e.close()
	work.Wait()
}

// lose lets no further call use e.
func (p *pool) lose(e *exclusive) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(e)
}

// gone counts one less.
func (p *pool) gone(e *exclusive) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.alive, e)
	if !p.closed {
		p.s.m.metrics.exclusive.WithLabelValues(p.s.config.Name).Set(float64(len(p.alive)))
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// flush lets no further call use what there is: the upstream was replaced.
func (p *pool) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Clone(p.all) {
		p.drop(e)
	}
}

// close ends all. Calls that run are left to end; those that wait for an
// answer of their caller are not.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	all := slices.Collect(maps.Keys(p.alive))
	p.mu.Unlock()
	p.flush()
	for _, e := range all {
		e.giveUp()
	}
}

// forget ends what is of a client that is gone.
func (p *pool) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range slices.Clone(p.all) {
		if e.key == key {
			p.drop(e)
		}
	}
}

// rootsChanged tells what is of a client that its roots are others.
func (p *pool) rootsChanged(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.all {
		if e.key == key && allows(e.capabilities, mcp.MethodListRoots) {
			p.s.m.spawn(e.rootsChanged)
		}
	}
}

// size is how many there are.
func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.alive)
}
