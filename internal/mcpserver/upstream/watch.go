// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// errCredential: the credential that the session was opened with is not the
// one that is mounted now.
var errCredential = errors.New("the credential changed")

// watch looks after a session until it is lost: health, changes of the list,
// and the credential it was opened with.
func (s *source) watch(ctx context.Context, l *lease) error {
	ctx, cancel := context.WithCancel(ctx)
	listening := make(chan struct{})
	defer func() {
		cancel()
		<-listening
	}()
	live := make(chan bool, 1)
	go func() {
		defer close(listening)
		var both sync.WaitGroup
		both.Go(func() { s.subscribe(ctx, l) })
		s.listen(ctx, l, live)
		both.Wait()
	}()
	health := time.NewTicker(s.m.timing.Health)
	defer health.Stop()
	credential := time.NewTicker(s.m.timing.Credential)
	defer credential.Stop()
	refresh := time.NewTimer(s.nextRefresh(false))
	defer refresh.Stop()
	again := newRereads(s.m.timing.Again)
	defer again.timer.Stop()
	told := false
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.Done():
			err = l.Lost()
		case <-credential.C:
			if s.m.fingerprint(&s.config) != l.credential {
				return errCredential
			}
			continue
		case told = <-live:
			if !told {
				continue
			}
			told = l.Abilities().ListChanged()
			s.unheard(l)
			// What changed before the stream stood was not told.
			err = s.reload(ctx, l)
		case <-s.poke:
			if err = s.check(ctx, l); l.dead.Load() {
				err = &client.Error{Reason: client.SessionLost}
			}
		case <-health.C:
			err = s.unlessBusy(ctx, l, s.check)
		case <-l.Changed():
			err = s.reload(ctx, l)
			refresh.Reset(s.nextRefresh(told))
			again.begin(mcp.IsModern(l.Version()))
		case <-again.timer.C:
			err = s.unlessBusy(ctx, l, s.reload)
			again.next()
		case <-refresh.C:
			err = s.unlessBusy(ctx, l, s.reload)
			refresh.Reset(s.nextRefresh(told))
		}
		if err != nil {
			return err
		}
	}
}

// rereads say when lists are read again after a change that was told. Behind
// one address there may be several replicas, and the one that answers in the
// modern era is not always the one that told: it may not have the change yet.
type rereads struct {
	timer       *time.Timer
	first, wait time.Duration
	left        int
}

const (
	// maxRereads and their factor span the time in which replicas of a server
	// of ours load a catalog.
	maxRereads   = 5
	rereadFactor = 3
)

func newRereads(first time.Duration) *rereads {
	r := &rereads{timer: time.NewTimer(time.Hour), first: first}
	r.timer.Stop()
	return r
}

// begin begins anew, if there may be replicas to disagree.
func (r *rereads) begin(replicas bool) {
	if r.first == 0 || !replicas {
		return
	}
	r.wait, r.left = r.first, maxRereads
	r.timer.Reset(r.wait)
}

// next goes on after one.
func (r *rereads) next() {
	r.wait *= rereadFactor
	if r.left--; r.left > 0 {
		r.timer.Reset(r.wait)
	}
}

// unheard tells those who follow resources that something may have changed
// before the stream stood on which a legacy server tells of it.
func (s *source) unheard(l *lease) {
	if mcp.IsLegacy(l.Version()) && s.m.followsOf(s.config.Name).missed() {
		s.m.options.Updated()
	}
}

// nextRefresh says when the list is to be read again although nothing was
// told: when its ttl is over, and seldom while changes are told.
func (s *source) nextRefresh(told bool) time.Duration {
	if told {
		return s.m.timing.Seldom
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing != nil && s.listing.TTL != nil {
		return min(max(*s.listing.TTL, s.m.timing.Refresh/6), s.m.timing.Seldom)
	}
	return s.m.timing.Refresh
}

func (s *source) check(ctx context.Context, l *lease) error {
	ctx, cancel := context.WithTimeout(ctx, s.m.timing.Handshake)
	defer cancel()
	return l.Check(ctx)
}

func (s *source) reload(ctx context.Context, l *lease) error {
	ctx, cancel := context.WithTimeout(ctx, s.m.timing.Handshake)
	defer cancel()
	listing, err := s.list(ctx, l)
	if err != nil {
		return err
	}
	s.take(listing)
	return nil
}

// listen keeps the stream on which a server tells of changes, where it says
// that it does; live is told when it stands and when it does not.
func (s *source) listen(ctx context.Context, l *lease, live chan<- bool) {
	if !l.Abilities().Tells() {
		return
	}
	tell := func(v bool) {
		select {
		case live <- v:
		case <-ctx.Done():
		}
	}
	backoff := s.m.timing.Backoff
	for ctx.Err() == nil {
		began := time.Now()
		offered, _ := l.Listen(ctx, func() { tell(true) })
		tell(false)
		if !offered {
			return
		}
		if time.Since(began) > s.m.timing.Seldom/10 {
			backoff = s.m.timing.Backoff
		}
		s.pause(ctx, backoff)
		backoff = min(2*backoff, s.m.timing.MaxBackoff)
	}
}

// equal compares what lists say and for how long.
func (l *Listing) equal(o *Listing) bool {
	return l.Can == o.Can && slices.Equal(l.Left, o.Left) && l.Private == o.Private && sameTTL(l.Lists, o.Lists) &&
		sameEntries(l.Tools, o.Tools) && sameEntries(l.Resources, o.Resources) && sameEntries(l.Templates, o.Templates) && sameEntries(l.Prompts, o.Prompts)
}

// keep takes over from before what could not be read this time.
func (l *Listing) keep(before *Listing) {
	if before == nil {
		return
	}
	for _, method := range l.Failed {
		switch method {
		case mcp.MethodResourcesList:
			l.Resources = before.Resources
		case mcp.MethodResourceTemplates:
			l.Templates = before.Templates
		case mcp.MethodPromptsList:
			l.Prompts = before.Prompts
		}
	}
}

func sameEntries(a, b []client.Entry) bool {
	return slices.EqualFunc(a, b, func(a, b client.Entry) bool { return a.ID == b.ID && bytes.Equal(a.Definition, b.Definition) })
}

func sameTTL(a, b *client.Lists) bool {
	if a.TTL == nil || b.TTL == nil {
		return a.TTL == b.TTL
	}
	return *a.TTL == *b.TTL
}
