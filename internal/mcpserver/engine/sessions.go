// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Reasons of refused sessions.
const (
	reasonSessionLimit = "SessionLimit"
	reasonDraining     = "Draining"
)

// Sessions of legacy clients.
func (e *Engine) Sessions() *session.Registry { return e.sessions }

// TellSessions tells sessions of changes until ctx ends or the registry of
// entries is closed.
func (e *Engine) TellSessions(ctx context.Context) {
	subscription, ok := e.registry.Subscribe()
	if !ok {
		return
	}
	defer e.registry.Unsubscribe(subscription)
	for {
		select {
		case <-ctx.Done():
			return
		case <-subscription.Closed:
			return
		case <-subscription.Changed:
			changes, snapshot := subscription.Take(), e.registry.Snapshot()
			for _, s := range e.sessions.All() {
				r := &Request{Snapshot: snapshot, Caller: s.Caller()}
				s.Tell(changes, e.versions(ctx, r, s))
			}
		}
	}
}

// Stand serves a stream of a session: the standing one, or the one that the
// event id last belongs to. It counts as an open stream, and does not outlive
// the credential that opened it. The reply has a body when none was opened.
func (e *Engine) Stand(ctx context.Context, s *session.Session, caller *principal.Principal, last string, open func() (Stream, error)) Reply {
	done, refusal := e.Reserve()
	if done == nil {
		return refusal
	}
	defer done()
	if !caller.Expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, caller.Expires)
		defer cancel()
	}
	_ = s.Serve(ctx, func() (session.Stream, error) { return open() }, last) // However it ends, the client knows.
	return Reply{Streamed: true}
}

// Reserve counts an open stream until done is called; done is nil when there
// are too many.
func (e *Engine) Reserve() (done func(), refusal Reply) {
	done, ok := e.limits.stream()
	if !ok {
		e.metrics.Refused(string(call.StreamLimit))
		return nil, Reply{Status: TooManyRequests, Body: wire.AppendError(nil, nil, tooManyStreams())}
	}
	return done, Reply{}
}

// Draining is the error of a server that takes no requests any more.
func Draining() *wire.Error {
	return &wire.Error{Code: mcp.CodeUnavailable, Message: "the server is shutting down", Data: wire.Data(reasonDraining)}
}

// NoCatalog is that of one that has none yet.
func NoCatalog() *wire.Error {
	return &wire.Error{Code: mcp.CodeUnavailable, Message: "no catalog is loaded yet", Data: wire.Data("NoCatalog")}
}

func tooManyStreams() *wire.Error {
	return &wire.Error{Code: mcp.CodeTooManyRequests, Message: "too many open streams on this replica", Data: wire.Data(string(call.StreamLimit))}
}

// initialize echoes a version spoken here, else offers the newest of its era:
// who opens with initialize does not know the others. It begins the session.
func (e *Engine) initialize(_ context.Context, r *Request) Reply {
	asked, ok := r.Message.Params.Text("protocolVersion")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "protocolVersion must be a string"})
	}
	version := mcp.LegacyVersions[0]
	if mcp.IsLegacy(asked) {
		version = asked
	}
	s := r.Session
	if s == nil && r.NewSession != nil {
		var err error
		if s, err = r.NewSession(); err != nil {
			return e.refuseSession(r, err)
		}
	}
	declared := r.Snapshot.LegacyCapabilities(s != nil)
	if s != nil {
		capabilities := r.Message.Params.Get("capabilities")
		if !wire.IsObject(capabilities) {
			capabilities = nil
		}
		if !s.Begin(version, capabilities, declared) {
			return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "the session was initialized before"})
		}
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = r.Snapshot.AppendInitialize(out, version, declared)
	return Reply{Body: append(out, '}'), Session: s}
}

func (e *Engine) refuseSession(r *Request, err error) Reply {
	if errors.Is(err, session.ErrFull) {
		e.metrics.Refused(reasonSessionLimit)
		return r.fail(TooManyRequests, &wire.Error{
			Code: mcp.CodeTooManyRequests, Message: "too many sessions on this replica", Data: wire.Data(reasonSessionLimit),
		})
	}
	return r.fail(Unavailable, Draining())
}

// notified takes a notification of the client, which has no answer.
func (e *Engine) notified(r *Request) Reply {
	m, s := r.Message, r.Session
	switch m.Method {
	case mcp.NotificationCancelled:
		if id := m.Params.Get("requestId"); id != nil && r.Calls != nil {
			r.Calls.Cancel(id)
		}
	case mcp.NotificationInitialized:
		if s != nil {
			s.Initialized()
		}
	case mcp.NotificationRootsChanged:
		if s != nil {
			e.sessions.RootsChanged(s)
		}
	}
	return Reply{Status: Accepted}
}

// subscribe answers resources/subscribe.
func (e *Engine) subscribe(ctx context.Context, r *Request) Reply {
	uri, ok := r.Message.Params.Text("uri")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "uri must be a string"})
	}
	if versionOf(ctx, r, uri) == "" {
		return e.unknownResource(r, uri)
	}
	follow := e.follows.of(r.Session, true)
	follow.set(ctx, r, uri)
	follow.wait(ctx)
	if !r.Session.Watch(uri, versionOf(ctx, r, uri)) {
		follow.drop(uri)
		return r.fail(OK, &wire.Error{Code: mcp.CodeTooManyRequests, Message: "the session subscribes to too many resources", Data: wire.Data("SubscriptionLimit")})
	}
	// What changed since the snapshot was taken is told now.
	now := r.at(e.registry.Snapshot())
	r.Session.Tell(registry.Changes{Content: true}, e.versions(ctx, now, r.Session))
	return r.empty()
}

// versions tells versions of what a session subscribed to apart, and has those
// upstreams tell of it that read it now.
func (e *Engine) versions(ctx context.Context, r *Request, s *session.Session) func(uri string) string {
	return func(uri string) string {
		if follow := e.follows.of(s, false); follow != nil {
			follow.set(ctx, r, uri)
		}
		return versionOf(ctx, r, uri)
	}
}

// unsubscribe answers resources/unsubscribe. What is not subscribed to is so
// afterwards too.
func (e *Engine) unsubscribe(_ context.Context, r *Request) Reply {
	uri, ok := r.Message.Params.Text("uri")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "uri must be a string"})
	}
	r.Session.Unwatch(uri)
	if follow := e.follows.of(r.Session, false); follow != nil {
		follow.drop(uri)
	}
	return r.empty()
}

// setLevel answers logging/setLevel.
func (e *Engine) setLevel(_ context.Context, r *Request) Reply {
	level, _ := r.Message.Params.Text("level")
	if !slices.Contains(mcp.LogLevels, level) {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "level must be one of debug, info, notice, warning, error, critical, alert, emergency"})
	}
	r.Session.SetLevel(level)
	return r.empty()
}

func (r *Request) empty() Reply {
	return Reply{Body: wire.AppendResult(r.Out, r.Message.ID, []byte("{}"))}
}
