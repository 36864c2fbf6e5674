// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/sse"
)

// sseCarrier speaks HTTP with SSE, the transport of revision 2024-11-05: one
// long stream brings all that the server says, and its first event says where
// messages are posted to.
type sseCarrier struct {
	*httpCarrier
	// ended is closed when the stream is over; nothing comes any more.
	ended chan struct{}

	waiting sync.Mutex
	pending map[int64]chan incoming
}

func newSSE(options *Options, hear func(incoming)) *sseCarrier {
	return &sseCarrier{httpCarrier: newHTTP(options, hear), ended: make(chan struct{}), pending: map[int64]chan incoming{}}
}

// open opens the stream, which outlives ctx, and awaits its first event.
func (c *sseCarrier) open(ctx context.Context) error {
	life, cancel := context.WithCancel(c.life)
	release := context.AfterFunc(ctx, cancel)
	response, err := c.send(life, http.MethodGet, nil, &message{})
	if err != nil {
		release()
		cancel()
		close(c.ended)
		return err
	}
	events := sse.NewReader(response.Body)
	events.Max = c.options.MaxBytes
	err = errNotOffered
	if response.StatusCode/100 == 2 && mediaType(response.Header) == typeSSE {
		err = c.first(events)
	}
	if !release() || err != nil {
		cancel()
		_ = response.Body.Close()
		close(c.ended)
		if err == nil {
			err = context.Cause(ctx)
		}
		return err
	}
	c.work.Go(func() {
		defer cancel()
		defer response.Body.Close()
		defer close(c.ended)
		c.read(events)
	})
	return nil
}

// first reads where messages go: to the same origin, or nowhere.
func (c *sseCarrier) first(events *sse.Reader) error {
	event, err := events.Next()
	if err != nil {
		return networkError(err)
	}
	base, err := url.Parse(c.options.URL)
	if err != nil || event.Kind != "endpoint" {
		return errNotOffered
	}
	target, err := base.Parse(strings.TrimSpace(string(event.Data)))
	if err != nil || target.Scheme != base.Scheme || !strings.EqualFold(target.Host, base.Host) || target.User != nil {
		return &Error{Reason: Redirected}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.posts = target.String()
	return nil
}

// read hands on what comes, until the stream ends.
func (c *sseCarrier) read(events *sse.Reader) {
	for {
		event, err := events.Next()
		if err != nil {
			return
		}
		if event.Kind != "" && event.Kind != "message" {
			continue
		}
		for _, in := range parseAll(event.Data) {
			if in.method != nil {
				c.take(in)
				continue
			}
			id, err := strconv.ParseInt(string(in.id), 10, 64)
			if text, ok := wire.Text(in.id); ok {
				id, err = strconv.ParseInt(text, 10, 64)
			}
			if err == nil {
				c.deliver(id, in)
			}
		}
	}
}

func (c *sseCarrier) deliver(id int64, in incoming) {
	c.waiting.Lock()
	defer c.waiting.Unlock()
	if waiter := c.pending[id]; waiter != nil && in.answers(id) {
		delete(c.pending, id)
		waiter <- in // It has room for one.
	}
}

// request implements carrier.
func (c *sseCarrier) request(ctx context.Context, m *message) (result []byte, err error) {
	answer := make(chan incoming, 1)
	c.waiting.Lock()
	c.pending[m.id] = answer
	c.waiting.Unlock()
	r, _ := c.state()
	defer func() {
		c.waiting.Lock()
		delete(c.pending, m.id)
		c.waiting.Unlock()
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
			c.cancelled(r, m)
		}
	}()
	if err := c.notify(ctx, m); err != nil {
		return nil, err
	}
	select {
	case in := <-answer:
		return in.outcome(0)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-c.ended:
		select {
		case in := <-answer: // It came before the end.
			return in.outcome(0)
		default:
			return nil, &Error{Reason: ConnectionLost}
		}
	}
}

// stream implements carrier: the one stream stands already.
func (c *sseCarrier) stream(ctx context.Context, standing func()) error {
	standing()
	select {
	case <-c.ended:
		return &Error{Reason: ConnectionLost}
	case <-ctx.Done():
		return ctx.Err()
	}
}
