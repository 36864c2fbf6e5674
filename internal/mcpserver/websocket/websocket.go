// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package websocket is MCP over WebSocket: the rules of stdio, one message per
// text frame, both eras. No revision of the protocol defines it; the
// subprotocol is "mcp", as clients that have it ask for.
package websocket

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	subprotocol    = "mcp"
	allowedMethods = "GET, OPTIONS"
	// pingEvery shows both sides, and what is between, that the other lives;
	// pongWait is how long the answer may take.
	pingEvery = 15 * time.Second
	pongWait  = 60 * time.Second
	// passedOver is how many times the limit is read of a message that is too
	// large, so that the connection can go on after it.
	passedOver = 8
)

// Transport implements transport.HTTP.
type Transport struct {
	*duplex.Host
	gate *httpgate.Gate
}

var _ transport.HTTP = (*Transport)(nil)

// New gives a transport that is not started.
func New(m *metrics.Metrics, log *slog.Logger) *Transport {
	return &Transport{Host: duplex.New(m, log), gate: httpgate.New(m)}
}

// Type implements transport.HTTP.
func (t *Transport) Type() serverconfig.TransportType { return serverconfig.TransportWebSocket }

func (t *Transport) upgrade(w http.ResponseWriter, r *http.Request, caller *principal.Principal) {
	socket, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{subprotocol},
		// The Origin was held against the catalog already. What the library
		// would do is compare it with Host, which a rebound name makes equal.
		InsecureSkipVerify: true,
	})
	if err != nil {
		return // It has answered.
	}
	defer socket.CloseNow() //nolint:errcheck // It may be closed already.
	socket.SetReadLimit(-1)
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	go ping(ctx, socket, cancel)
	err = t.Serve(ctx, &conn{socket: socket}, duplex.Options{
		Transport: t.Type(), Opener: caller,
		Caller: func(now *registry.Snapshot) (*principal.Principal, *wire.Error) { return httpgate.Caller(r, now) },
	})
	status, reason := websocket.StatusNormalClosure, ""
	var closing *closeError
	switch {
	case errors.Is(err, duplex.ErrExpired):
		status, reason = websocket.StatusPolicyViolation, duplex.ErrExpired.Error()
	case errors.As(err, &closing):
		status, reason = closing.status, closing.reason
	case err == nil:
		select {
		case <-t.Stopping():
			status, reason = websocket.StatusGoingAway, "the server is shutting down"
		default:
		}
	}
	_ = socket.Close(status, reason) // A client that is gone is no error of ours.
}

// ping keeps the connection alive, and ends it when the client is silent.
func ping(ctx context.Context, socket *websocket.Conn, gone context.CancelCauseFunc) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		wait, cancel := context.WithTimeout(ctx, pongWait)
		err := socket.Ping(wait)
		cancel()
		if err != nil {
			gone(duplex.ErrGone)
			return
		}
	}
}

// closeError is why a connection is closed from here.
type closeError struct {
	status websocket.StatusCode
	reason string
}

func (e *closeError) Error() string { return e.reason }

// conn implements duplex.Conn.
type conn struct{ socket *websocket.Conn }

// Read implements duplex.Conn. It ends when the connection is closed: the
// library would close it with ctx, and no peer would hear why.
func (c *conn) Read(ctx context.Context, limit int64) ([]byte, error) {
	kind, r, err := c.socket.Reader(context.WithoutCancel(ctx))
	if err != nil {
		if websocket.CloseStatus(err) != -1 {
			return nil, duplex.ErrGone
		}
		return nil, err
	}
	if kind != websocket.MessageText {
		return nil, &closeError{websocket.StatusUnsupportedData, "messages are text frames"}
	}
	message, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(message)) <= limit {
		return message, nil
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(r, passedOver*limit)); err != nil || n == passedOver*limit {
		return nil, &closeError{websocket.StatusMessageTooBig, "the message is too large"}
	}
	return nil, &duplex.TooLargeError{Limit: limit}
}

// Write implements duplex.Conn.
func (c *conn) Write(ctx context.Context, message []byte) error {
	return c.socket.Write(ctx, websocket.MessageText, message)
}

// ServeHTTP implements http.Handler.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := t.Begin()
	if h == nil {
		httpgate.Refuse(w, http.StatusServiceUnavailable, engine.Draining())
		return
	}
	defer t.End()
	snapshot := h.Snapshot()
	if !t.gate.Origin(w, r, snapshot, allowedMethods) {
		return
	}
	if snapshot == nil {
		httpgate.Refuse(w, http.StatusServiceUnavailable, engine.NoCatalog())
		return
	}
	if httpgate.Preflight(w, r, allowedMethods) {
		return
	}
	w.Header().Set("Allow", allowedMethods)
	if r.Method != http.MethodGet {
		httpgate.Refuse(w, http.StatusMethodNotAllowed, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "upgrade to a WebSocket by GET"})
		return
	}
	if caller := t.gate.Authenticate(w, r, snapshot); caller != nil {
		t.upgrade(w, r, caller)
	}
}
