// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package ssehttp

import (
	"context"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
)

// conn is one stream and what is posted to it. It implements
// duplex.KeepAliver.
type conn struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	endpoint string
	buffer   []byte
	posted   chan []byte
	// over is closed when nobody reads what is posted any more.
	over chan struct{}
}

var _ duplex.KeepAliver = (*conn)(nil)

func newConn(w http.ResponseWriter, endpoint string) *conn {
	return &conn{w: w, control: http.NewResponseController(w), endpoint: endpoint, posted: make(chan []byte), over: make(chan struct{})}
}

// Read implements duplex.Conn. What is too large was refused to who posted it.
func (c *conn) Read(ctx context.Context, _ int64) ([]byte, error) {
	select {
	case message := <-c.posted:
		return message, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Open implements duplex.Opener: the first event says where messages go.
func (c *conn) Open(ctx context.Context) error {
	header := c.w.Header()
	header.Set("Content-Type", mediaStream)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	return c.event(ctx, "event: endpoint\ndata: ", []byte(c.endpoint))
}

// Write implements duplex.Conn.
func (c *conn) Write(ctx context.Context, message []byte) error {
	return c.event(ctx, "event: message\ndata: ", message)
}

// KeepAlive implements duplex.KeepAliver by a comment.
func (c *conn) KeepAlive(ctx context.Context) error { return c.event(ctx, ":", nil) }

func (c *conn) event(ctx context.Context, head string, data []byte) error {
	c.buffer = append(append(append(c.buffer[:0], head...), data...), "\n\n"...)
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Time{}
	}
	_ = c.control.SetWriteDeadline(deadline) // Not every writer has deadlines.
	if _, err := c.w.Write(c.buffer); err != nil {
		return err
	}
	return c.control.Flush()
}
