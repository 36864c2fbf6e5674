// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package streamhttp is streamable HTTP: both eras of the protocol on one URL.
// Legacy clients get a session; requests that name none are served without.
package streamhttp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Transport implements transport.HTTP.
type Transport struct {
	metrics *metrics.Metrics
	peers   *peers.Peers
	log     *slog.Logger
	gate    *httpgate.Gate

	mu      sync.Mutex
	handler transport.Handler
	stopped bool
	active  sync.WaitGroup
}

var _ transport.HTTP = (*Transport)(nil)

// New gives a transport that is not started. Requests of sessions that other
// replicas have go to them.
func New(m *metrics.Metrics, p *peers.Peers, log *slog.Logger) *Transport {
	return &Transport{metrics: m, peers: p, log: log, gate: httpgate.New(m)}
}

// Type implements transport.HTTP.
func (t *Transport) Type() serverconfig.TransportType { return serverconfig.TransportStreamableHTTP }

// Start implements transport.Transport.
func (t *Transport) Start(h transport.Handler) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.handler != nil || t.stopped {
		return transport.ErrStarted
	}
	t.handler = h
	return nil
}

// Stop implements transport.Transport.
func (t *Transport) Stop(ctx context.Context) error {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
	done := make(chan struct{})
	go func() {
		t.active.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin gives the handler, nil when there is none (any more).
func (t *Transport) begin() transport.Handler {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped || t.handler == nil {
		return nil
	}
	t.active.Add(1)
	return t.handler
}

// ServeHTTP implements http.Handler. The Origin rule stands before all else,
// on every method, and authentication before anything is read.
func (t *Transport) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := t.begin()
	if h == nil {
		refuse(w, http.StatusServiceUnavailable, engine.Draining())
		return
	}
	defer t.active.Done()
	snapshot := h.Snapshot()
	if !t.gate.Origin(w, r, snapshot, allowedMethods) {
		return
	}
	if snapshot == nil {
		refuse(w, http.StatusServiceUnavailable, engine.NoCatalog())
		return
	}
	if httpgate.Preflight(w, r, allowedMethods) {
		return
	}
	caller := t.gate.Authenticate(w, r, snapshot)
	switch {
	case caller == nil:
	case r.Method == http.MethodPost:
		t.post(w, r, h, snapshot, caller)
	case r.Method == http.MethodGet:
		t.get(w, r, h, caller)
	case r.Method == http.MethodDelete:
		t.end(w, r, h, caller)
	default:
		notAllowed(w)
	}
}

const allowedMethods = "GET, POST, DELETE, OPTIONS"

// refuse answers a request that no message was read from.
func refuse(w http.ResponseWriter, status int, err *wire.Error) {
	writeJSON(w, status, wire.AppendError(nil, nil, err))
}
