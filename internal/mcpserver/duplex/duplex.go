// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package duplex serves MCP over connections that carry whole messages in both
// directions and nothing else: stdio, WebSocket, memory. The rules are those
// that the protocol has for stdio: there are no headers, so the era of a
// request is what its _meta says; notifications/cancelled cancels; the
// messages of all streams share the connection and are told apart by what is
// in them.
package duplex

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Conn carries messages. Read and the others may be called at the same time, but
// each by one goroutine only.
type Conn interface {
	// Read gives the next message, at most limit bytes: a *TooLargeError for a
	// larger one, after which it can go on; io.EOF when the peer sends no
	// more, though it may still read; any other error when it is gone. The
	// bytes are the caller's.
	Read(ctx context.Context, limit int64) ([]byte, error)
	// Write sends one message of compact JSON, whole or not at all.
	Write(ctx context.Context, message []byte) error
}

// KeepAliver is a Conn that has a way to show that it lives, besides messages.
type KeepAliver interface {
	Conn
	KeepAlive(ctx context.Context) error
}

// TooLargeError says that a message was passed over.
type TooLargeError struct {
	Limit int64
	// Head and Tail are how it began and ended, KeptEnds bytes at most; nil
	// where that is not known.
	Head, Tail []byte
}

// KeptEnds is how much is kept of either end of a message that is too large.
const KeptEnds = 1 << 10

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the message is larger than %d bytes", e.Limit)
}

// writeLimit is how long one message may take: a peer that does not read must
// not hold what others need.
const writeLimit = 60 * time.Second

// maxRunning is how many requests of one connection may run at a time. Those
// beyond are refused and not kept waiting: a cancellation behind them in the
// connection has to be read.
const maxRunning = 2048

// Opener is a Conn that says something before the first message.
type Opener interface {
	Conn
	Open(ctx context.Context) error
}

// ErrExpired is the cause with which a connection ends whose credential did.
var ErrExpired = errors.New("the credential has expired")

// ErrGone is the cause with which the calls of a connection end that is gone.
var ErrGone = errors.New("the connection is gone")

// Host serves connections; it is the part that transports made of them share.
type Host struct {
	metrics *metrics.Metrics
	log     *slog.Logger

	mu      sync.Mutex
	handler transport.Handler
	stopped bool
	stop    chan struct{}
	kill    chan struct{}
	active  sync.WaitGroup
}

// New gives a host that is not started.
func New(m *metrics.Metrics, log *slog.Logger) *Host {
	return &Host{metrics: m, log: log, stop: make(chan struct{}), kill: make(chan struct{})}
}

// Start implements transport.Transport.
func (h *Host) Start(handler transport.Handler) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.handler != nil || h.stopped {
		return transport.ErrStarted
	}
	h.handler = handler
	return nil
}

// Stop implements transport.Transport: connections take no new request, and
// end when what runs is answered. Streams are ended by the registry before.
// When ctx ends, what still runs is cancelled.
func (h *Host) Stop(ctx context.Context) error {
	h.mu.Lock()
	first := !h.stopped
	h.stopped = true
	h.mu.Unlock()
	if first {
		close(h.stop)
	}
	done := make(chan struct{})
	go func() {
		h.active.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		h.mu.Lock()
		defer h.mu.Unlock()
		select {
		case <-h.kill:
		default:
			close(h.kill)
		}
		return ctx.Err()
	}
}

// Stopping is closed when Stop was called.
func (h *Host) Stopping() <-chan struct{} { return h.stop }

// Begin gives the handler, nil when there is none (any more). End must be
// called after a handler was given.
func (h *Host) Begin() transport.Handler {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped || h.handler == nil {
		return nil
	}
	h.active.Add(1)
	return h.handler
}

// End ends what Begin began.
func (h *Host) End() { h.active.Done() }

// Options of one connection.
type Options struct {
	// Transport that it came by, for the listing of sessions.
	Transport serverconfig.TransportType
	// LegacyOnly: requests of the modern era are refused.
	LegacyOnly bool
	// Session that the connection is for; nil: initialize opens one.
	Session *session.Session
	// Opener is who made the connection. It does not outlive the credential.
	Opener *principal.Principal
	// Caller says who sends a message. A credential may have ended, and
	// another catalog may want one, since the connection was made.
	Caller func(*registry.Snapshot) (*principal.Principal, *wire.Error)
}

// Anyone is the Caller of connections of whom nothing is known. Where the
// catalog wants to know who calls, they may do nothing.
func Anyone(*registry.Snapshot) (*principal.Principal, *wire.Error) { return nil, nil }

// RefusedError says that a connection was not served; Body is the answer.
type RefusedError struct{ engine.Reply }

func (*RefusedError) Error() string { return "refused" }

// Serve answers what conn brings until the peer sends no more and all that
// runs is answered, until ctx ends, with which what runs is cancelled, or
// until Stop. It is called between Begin and End. A read that is still under
// way at the end ends with the connection, which the caller closes.
func (h *Host) Serve(ctx context.Context, conn Conn, options Options) error {
	if p := options.Opener; p != nil && !p.Expires.IsZero() {
		var end context.CancelFunc
		ctx, end = context.WithDeadlineCause(ctx, p.Expires, ErrExpired)
		defer end()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(ErrGone)
	c := &connection{host: h, conn: conn, options: options, ctx: ctx, gone: cancel, running: map[string]*running{}, over: make(chan struct{})}
	defer c.end()
	if options.Session != nil {
		if refused := c.stand(options.Session, options.Opener); refused != nil {
			return refused
		}
		c.session.Store(options.Session)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.read() }()
	var err error
	select {
	case err = <-ended:
	case <-h.stop:
	case <-c.over:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	c.drain(err != nil)
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case err != nil:
		cancel(err)
	}
	c.await()
	if err == nil && errors.Is(context.Cause(ctx), ErrExpired) {
		err = ErrExpired // What ended first does not matter.
	}
	return err
}

// await waits until all is answered, or nobody waits for it any more.
func (c *connection) await() {
	done := make(chan struct{})
	go func() {
		c.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-c.host.kill:
		c.gone(ErrGone)
		<-done
	}
}

// connection is one that is being served.
type connection struct {
	host    *Host
	conn    Conn
	options Options
	ctx     context.Context //nolint:containedctx // It is the connection's life.
	gone    context.CancelCauseFunc
	calls   sync.WaitGroup

	// session of a legacy client, once there is one.
	session atomic.Pointer[session.Session]
	// over is closed when the session is.
	over chan struct{}
	// standing ends with the session's stream.
	standing sync.WaitGroup

	write sync.Mutex

	mu       sync.Mutex
	draining bool
	running  map[string]*running // by raw id
}

// running is a request that is not answered yet.
type running struct {
	cancel context.CancelCauseFunc
	// stream: it ends only when somebody ends it.
	stream bool
}

// drain takes no more requests. Streams to a peer that sends no more are
// ended: it would never cancel them.
func (c *connection) drain(peerEnded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.draining = true
	for _, r := range c.running {
		if peerEnded && r.stream {
			r.cancel(session.ErrCancelled)
		}
	}
}

// read takes messages until there are no more.
func (c *connection) read() error {
	for {
		raw, err := c.conn.Read(c.ctx, c.limit())
		var large *TooLargeError
		switch {
		case errors.As(err, &large):
			c.host.metrics.Refused("Body")
			c.send(wire.AppendError(nil, nil, &wire.Error{
				Code: mcp.CodeTooLarge, Message: "the message is larger than " + strconv.FormatInt(large.Limit, 10) + " bytes", Data: wire.Data("MessageTooLarge"),
			}))
		case err != nil:
			return err
		default:
			c.take(raw)
		}
	}
}

// unlimited stands in while there is no catalog, which has the limit.
const unlimited = 1 << 20

func (c *connection) limit() int64 {
	if snapshot := c.host.handler.Snapshot(); snapshot != nil {
		return snapshot.Config.Limits.MaxMessageBytes
	}
	return unlimited
}

// end ends the session with its connection. Nothing is written afterwards.
func (c *connection) end() {
	c.gone(ErrGone)
	c.standing.Wait()
	if s := c.session.Load(); s != nil {
		c.host.handler.Sessions().Remove(s)
	}
	c.write.Lock() // The last message is out, and the next will see that it is over.
	defer c.write.Unlock()
}

// send writes a message.
func (c *connection) send(message []byte) {
	c.touch(func(ctx context.Context) error { return c.conn.Write(ctx, wire.OneLine(message)) })
}

// touch lets f write to the connection. One on which that fails is gone.
func (c *connection) touch(f func(ctx context.Context) error) {
	c.write.Lock()
	defer c.write.Unlock()
	if c.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, writeLimit)
	defer cancel()
	if f(ctx) != nil {
		c.gone(ErrGone)
	}
}
