// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// passedOver is how many times the limit is read of a message that is too
// large, so that the connection can go on after it.
const passedOver = 8

// wsCarrier speaks over a WebSocket: one message per text frame, both eras, by
// the rules of stdio.
type wsCarrier struct {
	*httpCarrier
	socket *websocket.Conn
	// ended is closed when nothing comes any more.
	ended   chan struct{}
	waiters waiters
}

// isWebSocket reports whether a URL is one of a WebSocket.
func isWebSocket(raw string) bool {
	scheme, _, _ := strings.Cut(raw, ":")
	return strings.EqualFold(scheme, "ws") || strings.EqualFold(scheme, "wss")
}

// openWebSocket makes a connection, which outlives ctx.
func openWebSocket(ctx context.Context, options *Options, hear func(incoming), asks *asks) (*wsCarrier, error) {
	c := &wsCarrier{httpCarrier: newHTTP(options, hear, asks), ended: make(chan struct{})}
	header := options.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("User-Agent", "espalier/"+options.Version)
	socket, response, err := websocket.Dial(ctx, options.URL, &websocket.DialOptions{ //nolint:bodyclose // The library has read it.
		HTTPClient: c.client, HTTPHeader: header, Subprotocols: []string{"mcp"},
	})
	if err != nil {
		c.stop()
		return nil, c.notUpgraded(ctx, response, err)
	}
	socket.SetReadLimit(-1) // The limit is ours.
	c.socket = socket
	c.work.Go(func() {
		defer close(c.ended)
		c.read()
	})
	return c, nil
}

func (c *wsCarrier) notUpgraded(ctx context.Context, response *http.Response, err error) error {
	var wrapped *url.Error // It holds the whole URL, query included.
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case response != nil && response.StatusCode != http.StatusSwitchingProtocols:
		return c.refusal(response, &message{})
	case response != nil:
		return &Error{Reason: NotMCP, Status: response.StatusCode}
	case errors.As(err, &wrapped):
		return networkError(wrapped.Err)
	}
	return networkError(err)
}

// read takes messages until there are no more.
func (c *wsCarrier) read() {
	for {
		kind, r, err := c.socket.Reader(context.Background())
		if err != nil || kind != websocket.MessageText {
			return
		}
		raw, err := io.ReadAll(io.LimitReader(r, c.options.MaxBytes+1))
		if err != nil {
			return
		}
		if int64(len(raw)) > c.options.MaxBytes {
			large := &largeLineError{head: raw[:min(len(raw), keptEnds)]}
			c.waiters.fail(large.ids(), &Error{Reason: TooLarge})
			rest := passedOver * c.options.MaxBytes
			if n, err := io.Copy(io.Discard, io.LimitReader(r, rest)); err != nil || n == rest {
				return
			}
			continue
		}
		for _, in := range parseAll(raw) {
			c.take(in)
		}
	}
}

func (c *wsCarrier) take(in incoming) {
	switch {
	case in.isRequest():
		if r, _ := c.state(); !r.modern { // A modern server asks nothing.
			c.asks.take(in, func(body []byte) { _ = c.write(c.life, body) })
		}
	case in.isNotification():
		c.hear(in)
	default:
		c.waiters.deliver(in)
	}
}

func (c *wsCarrier) write(ctx context.Context, body []byte) error {
	if err := c.socket.Write(ctx, websocket.MessageText, body); err != nil {
		return &Error{Reason: ConnectionLost, Cause: err}
	}
	return nil
}

// request implements carrier. It is given up by a message: the connection is
// that of all.
func (c *wsCarrier) request(ctx context.Context, m *message) ([]byte, error) {
	result, err := c.waiters.exchange(ctx, m, c.ended, func() error { return c.notify(ctx, m) })
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
		if m.method != mcp.MethodInitialize && m.method != mcp.MethodDiscover {
			c.behind(func(ctx context.Context) { _ = c.notify(ctx, cancelNote(m.id)) })
		}
	}
	return result, err
}

// notify implements carrier. A message is written whole: that its own request
// is given up must not end the connection.
func (c *wsCarrier) notify(ctx context.Context, m *message) error {
	r, _ := c.state()
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), behind)
	defer cancel()
	return c.write(writing, m.encode(r, c.options.Version))
}

// stream implements carrier: what a legacy server says by itself comes anyway.
func (c *wsCarrier) stream(ctx context.Context, standing func()) error {
	return standUntil(ctx, c.ended, standing)
}

// close implements carrier.
func (c *wsCarrier) close(ctx context.Context) {
	release := context.AfterFunc(ctx, func() { _ = c.socket.CloseNow() })
	_ = c.socket.Close(websocket.StatusNormalClosure, "")
	release()
	c.abort()
}

// abort implements carrier.
func (c *wsCarrier) abort() {
	_ = c.socket.CloseNow()
	c.httpCarrier.abort()
}
