// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transport says what a way in to the server is. Others can be added
// without the engine knowing.
package transport

import (
	"context"
	"errors"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// ErrStarted says that a transport or server was started before. One that was
// stopped is not started again.
var ErrStarted = errors.New("already started")

// Handler answers messages; *engine.Engine is one.
type Handler interface {
	// Snapshot is what is served now, nil when nothing is yet.
	Snapshot() *registry.Snapshot
	// Handle answers one message that was read with that snapshot.
	Handle(ctx context.Context, r *engine.Request) engine.Reply
	// Sessions are those of legacy clients, of all transports.
	Sessions() *session.Registry
	// Stand serves the standing stream of a session, or the one that the event
	// id last belongs to, until ctx, the session or the caller's credential
	// ends. It counts against the limit of streams. The reply has a body when
	// none was opened.
	Stand(ctx context.Context, s *session.Session, caller *principal.Principal, last string, open func() (engine.Stream, error)) engine.Reply
	// Reserve counts a stream that is open for another replica until done is
	// called. With a nil done there are too many, and the reply says so.
	Reserve() (done func(), refusal engine.Reply)
}

// Transport is one way in.
type Transport interface {
	// Start serves h until Stop. A second Start gives ErrStarted.
	Start(h Handler) error
	// Stop takes no new message and returns when what runs is done or ctx
	// ends. It is idempotent.
	Stop(ctx context.Context) error
}

// HTTP is a transport that shares the server's port: requests for the path
// that the catalog gives its type are handed to it.
type HTTP interface {
	Transport
	http.Handler
	Type() serverconfig.TransportType
}
