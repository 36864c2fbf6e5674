// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"sync"
)

// modern is the one link of all requests of the modern era.
type modern struct {
	mu   sync.Mutex
	link link
}

// get gives the link, and opens it where there is none.
func (n *modern) get(ctx context.Context, b *bridge) (link, *fault) {
	n.mu.Lock()
	l := n.link
	n.mu.Unlock()
	if l != nil {
		return l, nil
	}
	l, f := b.open(ctx, b.pass(nil))
	if f != nil {
		return nil, f
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil { // Another was faster.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		l.close(closing)
		return n.link, nil
	}
	n.link = l
	return l, nil
}

// failed lets go of a link that has ended.
func (n *modern) failed(l link, f *fault) {
	if f == nil || !f.gone {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link == l {
		n.link = nil
	}
}

func (n *modern) abandon(ctx context.Context, note *message) {
	n.mu.Lock()
	l := n.link
	n.mu.Unlock()
	if l != nil {
		l.abandon(ctx, note)
	}
}

func (n *modern) close(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.link != nil {
		n.link.close(ctx)
	}
}
