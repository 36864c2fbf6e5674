// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ssehttp is HTTP with server-sent events, the transport of revision
// 2024-11-05: a GET opens one long stream that brings all that the server
// says, and its first event names the URL to which messages are posted. It
// carries the legacy era alone.
package ssehttp

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/duplex"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	allowedMethods = "GET, POST, OPTIONS"
	// querySession is what tells streams apart in the URL of their messages.
	querySession = "sessionId"
	mediaStream  = "text/event-stream"
)

// Transport implements transport.HTTP.
type Transport struct {
	*duplex.Host
	metrics *metrics.Metrics
	log     *slog.Logger
	gate    *httpgate.Gate
	peers   *peers.Peers

	mu      sync.Mutex
	streams map[*session.Session]*conn
}

var _ transport.HTTP = (*Transport)(nil)

// New gives a transport that is not started.
func New(m *metrics.Metrics, p *peers.Peers, log *slog.Logger) *Transport {
	return &Transport{Host: duplex.New(m, log), metrics: m, log: log, gate: httpgate.New(m), peers: p, streams: map[*session.Session]*conn{}}
}

// Type implements transport.HTTP.
func (t *Transport) Type() serverconfig.TransportType { return serverconfig.TransportSSE }

// ServeHTTP implements http.Handler. The Origin rule stands before all else,
// on every method, and authentication before anything is read.
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
	caller := t.gate.Authenticate(w, r, snapshot)
	switch {
	case caller == nil:
	case r.Method == http.MethodGet:
		t.get(w, r, h, caller)
	case r.Method == http.MethodPost:
		t.post(w, r, h, snapshot, caller)
	default:
		notAllowed(w)
	}
}

func unknownSession() *wire.Error {
	return &wire.Error{Code: mcp.CodeInvalidRequest, Message: "unknown session: open a stream again"}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", allowedMethods)
	httpgate.Refuse(w, http.StatusMethodNotAllowed, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "open a stream by GET; its first event says where to POST messages"})
}

// get opens a stream, which is a session of its own.
func (t *Transport) get(w http.ResponseWriter, r *http.Request, h transport.Handler, caller *principal.Principal) {
	s, err := h.Sessions().Open(caller, string(t.Type()))
	switch {
	case errors.Is(err, session.ErrFull):
		t.metrics.Refused("SessionLimit")
		tooMany(w, "too many sessions on this replica", "SessionLimit")
		return
	case err != nil:
		httpgate.Refuse(w, http.StatusServiceUnavailable, engine.Draining())
		return
	}
	c := newConn(w, r.URL.Path+"?"+querySession+"="+s.ID)
	t.put(s, c)
	defer t.drop(s, c)
	// What is asked for next on the same connection has its own.
	defer func() { _ = c.control.SetWriteDeadline(time.Time{}) }()
	err = t.Serve(r.Context(), c, duplex.Options{
		Transport: t.Type(), LegacyOnly: true, Session: s, Opener: caller,
		Caller: func(now *registry.Snapshot) (*principal.Principal, *wire.Error) { return httpgate.Caller(r, now) },
	})
	var refused *duplex.RefusedError
	if errors.As(err, &refused) {
		h.Sessions().Remove(s)
		tooMany(w, "too many open streams on this replica", "StreamLimit")
	}
}

func tooMany(w http.ResponseWriter, message, reason string) {
	httpgate.Refuse(w, http.StatusTooManyRequests, &wire.Error{Code: mcp.CodeTooManyRequests, Message: message, Data: wire.Data(reason)})
}

func (t *Transport) put(s *session.Session, c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.streams[s] = c
}

// drop forgets a stream; who posts to it is told that it is over.
func (t *Transport) drop(s *session.Session, c *conn) {
	t.mu.Lock()
	delete(t.streams, s)
	t.mu.Unlock()
	close(c.over)
}

// stream that a message is posted to; nil when there is none of the caller.
func (t *Transport) stream(r *http.Request, h transport.Handler, caller *principal.Principal) *conn {
	id := r.URL.Query().Get(querySession)
	if id == "" {
		return nil
	}
	s := h.Sessions().Get(id, caller)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.streams[s]
}

// post takes one message. Its answer comes on the stream.
func (t *Transport) post(w http.ResponseWriter, r *http.Request, h transport.Handler, snapshot *registry.Snapshot, caller *principal.Principal) {
	if r.URL.Query().Get(querySession) == "" {
		notAllowed(w) // As the specification has it: the client opens a stream then.
		return
	}
	var message bytes.Buffer
	if status, err := httpgate.Body(w, r, &message, snapshot.Config.Limits.MaxMessageBytes); err != nil {
		t.metrics.Refused("Body")
		httpgate.Refuse(w, status, err)
		return
	}
	if owner := session.Owner(r.URL.Query().Get(querySession)); t.peers.Elsewhere(r.Context(), owner) {
		httpgate.PassOn(w, r, t.peers, owner, message.Bytes(), unknownSession(), t.log)
		return
	}
	c := t.stream(r, h, caller)
	if c == nil {
		httpgate.Refuse(w, http.StatusNotFound, unknownSession())
		return
	}
	select {
	case c.posted <- message.Bytes():
		w.WriteHeader(http.StatusAccepted)
	case <-c.over:
		httpgate.Refuse(w, http.StatusNotFound, unknownSession())
	case <-r.Context().Done():
	}
}
