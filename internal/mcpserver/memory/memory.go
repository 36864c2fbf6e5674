// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory is a transport within one process, for tests: a pair of
// connections, one of which the server serves.
package memory

import (
	"context"
	"log/slog"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
)

// Transport implements transport.Transport.
type Transport struct{ *duplex.Host }

// New gives a transport that is not started.
func New(m *metrics.Metrics, log *slog.Logger) *Transport {
	return &Transport{Host: duplex.New(m, log)}
}

// Dial gives the client's end of a new connection; nil when the transport is
// not started, or was stopped. The connection is over when the client closes
// its end, or the server has stopped.
func (t *Transport) Dial(ctx context.Context) *Conn {
	if t.Begin() == nil {
		return nil
	}
	client, server := Pair()
	go func() {
		defer t.End()
		defer server.Close()
		_ = t.Serve(ctx, server, duplex.Options{Transport: "Memory", Caller: duplex.Anyone}) // However it ended, it has.
	}()
	return client
}

// Conn is one end of a pair. It implements duplex.Conn.
type Conn struct {
	in   <-chan []byte
	out  chan<- []byte
	once *sync.Once
	// closed is this end, gone the other.
	closed, gone chan struct{}
}

// Pair gives two ends of a connection: what is written to one is read from the
// other, in order.
func Pair() (a, b *Conn) {
	ab, ba := make(chan []byte), make(chan []byte)
	aClosed, bClosed := make(chan struct{}), make(chan struct{})
	return &Conn{in: ba, out: ab, once: new(sync.Once), closed: aClosed, gone: bClosed},
		&Conn{in: ab, out: ba, once: new(sync.Once), closed: bClosed, gone: aClosed}
}

// Read implements duplex.Conn.
func (c *Conn) Read(ctx context.Context, limit int64) ([]byte, error) {
	select {
	case message := <-c.in:
		if int64(len(message)) > limit {
			return nil, &duplex.TooLargeError{Limit: limit}
		}
		return message, nil
	case <-c.gone:
		return nil, duplex.ErrGone
	case <-c.closed:
		return nil, duplex.ErrGone
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Write implements duplex.Conn. It returns when the other end has read.
func (c *Conn) Write(ctx context.Context, message []byte) error {
	select {
	case c.out <- append([]byte(nil), message...):
		return nil
	case <-c.gone:
		return duplex.ErrGone
	case <-c.closed:
		return duplex.ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close closes this end. It is idempotent.
func (c *Conn) Close() { c.once.Do(func() { close(c.closed) }) }
