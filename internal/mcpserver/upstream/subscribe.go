// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// gather is how long further resources are waited for before a subscription
// is opened or grown: a client names several at once.
const gather = 5 * time.Millisecond

// manyGroups is from how many streams on the last one is grown instead of
// another being opened. Until then none is for what another is for already:
// some servers do not tell two subscriptions of one session apart.
const manyGroups = 32

// watching is a session that has changes of resources told to the source,
// until ctx ends or the stream does; standing is called when it does from then
// on. One Watch is for WatchSize resources at most.
type watching interface {
	Watch(ctx context.Context, uris []string, standing func()) error
	WatchSize() int
}

// subscriber keeps one session subscribed to what is followed.
type subscriber struct {
	source  *source
	session watching
	all     *follows
	groups  []*group
	work    sync.WaitGroup
}

// group is what one stream, or one subscription, is for.
type group struct {
	uris []string
	stop context.CancelCauseFunc
	// replaces are groups that end when this one stands, so that nothing
	// between is missed.
	replaces []*group
}

// subscribe keeps l subscribed to what is followed until ctx ends.
func (s *source) subscribe(ctx context.Context, l *lease) {
	session, ok := l.session.(watching)
	if !ok || !l.Abilities().Subscribe {
		return
	}
	b := &subscriber{source: s, session: session, all: s.m.followsOf(s.config.Name)}
	defer b.work.Wait()
	for ctx.Err() == nil {
		wanted, news := b.all.wanted()
		b.arrange(ctx, wanted)
		select {
		case <-news:
			s.pause(ctx, gather)
		case <-ctx.Done():
		}
	}
}

// arrange ends groups of which nothing is wanted, and begins those that are
// missing. A resource that is no longer wanted stays in its group: what is told
// of it goes nowhere.
func (b *subscriber) arrange(ctx context.Context, wanted map[string]bool) {
	b.groups = slices.DeleteFunc(b.groups, func(g *group) bool {
		if slices.ContainsFunc(g.uris, func(uri string) bool { return wanted[uri] }) {
			for _, uri := range g.uris {
				delete(wanted, uri)
			}
			return false
		}
		g.end()
		return true
	})
	var fresh []string
	for uri := range wanted {
		fresh = append(fresh, uri)
	}
	slices.Sort(fresh)
	size := b.session.WatchSize()
	if last := len(b.groups) - 1; len(fresh) > 0 && len(b.groups) >= manyGroups && len(b.groups[last].uris) < size {
		old := b.groups[last]
		n := min(size-len(old.uris), len(fresh))
		b.groups = b.groups[:last]
		b.begin(ctx, slices.Concat(old.uris, fresh[:n]), append(old.replaces, old))
		fresh = fresh[n:]
	}
	for uris := range slices.Chunk(fresh, size) {
		b.begin(ctx, uris, nil)
	}
}

func (g *group) end() {
	g.stop(client.ErrUnwanted)
	for _, old := range g.replaces {
		old.stop(client.ErrUnwanted)
	}
}

func (b *subscriber) begin(ctx context.Context, uris []string, replaces []*group) {
	g := &group{uris: uris, replaces: replaces}
	ctx, g.stop = context.WithCancelCause(ctx)
	b.groups = append(b.groups, g)
	b.work.Go(func() {
		defer g.stop(nil)
		b.keep(ctx, g)
	})
}

// keep holds the subscription of g until ctx ends.
func (b *subscriber) keep(ctx context.Context, g *group) {
	timing := b.source.m.timing
	backoff := timing.Backoff
	for ctx.Err() == nil {
		err := b.session.Watch(ctx, g.uris, func() {
			if b.all.stand(g) {
				b.source.m.options.Updated()
			}
			for _, old := range g.replaces {
				old.stop(client.ErrUnwanted)
			}
		})
		b.all.lose(g)
		var rpc *client.RPCError
		if errors.As(err, &rpc) {
			b.all.refuse(g)
			backoff = timing.MaxBackoff
		}
		if ctx.Err() == nil {
			b.source.pause(ctx, backoff)
			backoff = min(2*backoff, timing.MaxBackoff)
		}
	}
}
