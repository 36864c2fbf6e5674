// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// duplexLink is a link of one connection, which brings all that the server
// says and is the session: a WebSocket, or HTTP with SSE.
type duplexLink struct {
	// send sends a message, cut ends the connection.
	send func(ctx context.Context, m *message) *fault
	cut  func()
	// others takes what is no answer.
	others take
	// ended is closed when nothing comes any more.
	ended chan struct{}

	mu      sync.Mutex
	waiting map[string]*waiting
}

// waiting is a request that is not answered.
type waiting struct {
	m    *message
	to   take
	done chan struct{}
}

var errConnectionEnded = errors.New("the connection is over")

// exchange implements link.
func (l *duplexLink) exchange(ctx, _ context.Context, m *message, to take) *fault {
	w := &waiting{m: m, to: to, done: make(chan struct{})}
	l.mu.Lock()
	for _, id := range m.ids {
		l.waiting[idText(id)] = w
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for _, id := range m.ids {
			if l.waiting[idText(id)] == w {
				delete(l.waiting, idText(id))
			}
		}
	}()
	select {
	case <-l.ended:
		return sessionGone()
	default:
	}
	if f := l.send(ctx, m); f != nil {
		return f
	}
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return lost(context.Cause(ctx))
	case <-l.ended:
		select {
		case <-w.done: // It was the last that came.
			return nil
		default:
		}
		f := lost(errConnectionEnded)
		f.gone = true
		return f
	}
}

// take hands on what came.
func (l *duplexLink) take(p packet) {
	for i := range p.parts {
		in := &p.parts[i]
		id := in.id
		if !in.isAnswer() {
			id = subscription(in)
		}
		l.mu.Lock()
		w := l.waiting[idText(id)]
		l.mu.Unlock()
		if w == nil || id == nil {
			continue
		}
		_, all := w.m.settle(p)
		w.to(p)
		if all {
			close(w.done)
			l.mu.Lock()
			delete(l.waiting, idText(id))
			l.mu.Unlock()
		}
		return
	}
	l.others(p)
}

// subscription is the raw id of the listen request that a notification belongs
// to, nil for none.
func subscription(in *incoming) []byte {
	params, err := wire.DecodeObject(in.params)
	if err != nil {
		return nil
	}
	meta, err := wire.DecodeObject(params.Get("_meta"))
	if err != nil {
		return nil
	}
	return meta.Get(mcp.MetaSubscriptionID)
}

// say implements link.
func (l *duplexLink) say(ctx context.Context, m *message) *fault {
	select {
	case <-l.ended:
		return sessionGone()
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	return l.send(ctx, m)
}

// abandon implements link.
func (l *duplexLink) abandon(ctx context.Context, note *message) { _ = l.say(ctx, note) }

// agree implements link.
func (l *duplexLink) agree(string) {}

// stand implements link: the one connection brings it anyway.
func (l *duplexLink) stand(ctx context.Context, _ take) *fault {
	select {
	case <-l.ended:
		return sessionGone()
	case <-ctx.Done():
		return nil
	}
}

// close implements link.
func (l *duplexLink) close(context.Context) { l.drop() }

// drop implements link.
func (l *duplexLink) drop() {
	l.cut()
	<-l.ended
}
