// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/espalier-dev/espalier/internal/sse"
)

// sseCarrier speaks HTTP with SSE, the transport of revision 2024-11-05: one
// long stream brings all that the server says, and its first event says where
// messages are posted to.
type sseCarrier struct {
	*httpCarrier
	// ended is closed when the stream is over; nothing comes any more.
	ended   chan struct{}
	waiters waiters
}

func newSSE(options *Options, hear func(incoming), asks *asks) *sseCarrier {
	return &sseCarrier{httpCarrier: newHTTP(options, hear, asks), ended: make(chan struct{})}
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
	if response.StatusCode/100 == 2 && MediaType(response.Header) == typeSSE {
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
			c.waiters.deliver(in)
		}
	}
}

// request implements carrier.
func (c *sseCarrier) request(ctx context.Context, m *message) (result []byte, err error) {
	r, _ := c.state()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
			c.cancelled(r, m)
		}
	}()
	return c.waiters.exchange(ctx, m, c.ended, func() error { return c.notify(ctx, m) })
}

// stream implements carrier: the one stream stands already.
func (c *sseCarrier) stream(ctx context.Context, standing func()) error {
	return standUntil(ctx, c.ended, standing)
}
