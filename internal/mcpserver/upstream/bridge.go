// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/outbound"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// bridged is an upstream as one call sees it, whatever the eras of both: its
// requests go over the session that is right for the caller, and what the
// server asks is asked the caller. An *askedError in place of a result asks
// the caller for more.
type bridged struct {
	session // that all callers share
	s       *source
	l       *lease
	c       *call.Call
}

// askedError is an answer that asks the caller for more.
type askedError struct{ result *call.Result }

func (*askedError) Error() string { return "input is required" }

// exchange is a request that is passed on.
type exchange struct {
	send func(ctx context.Context, to session, aside client.Aside) ([]byte, error)
	// keep copies what is the caller's memory, for a request that is used after
	// the call's handler returned.
	keep func()
	// alone: it is worth a session of its own to a legacy server that may ask
	// the caller before it answers. A modern one may always.
	alone bool
}

// Call implements session.
func (b *bridged) Call(ctx context.Context, r *client.Call) ([]byte, error) {
	own := *r
	return b.pass(ctx, &exchange{
		alone: true,
		send: func(ctx context.Context, to session, aside client.Aside) ([]byte, error) {
			own.Aside = aside
			return to.Call(ctx, &own)
		},
		keep: func() { own.Args, own.Meta = bytes.Clone(own.Args), bytes.Clone(own.Meta) },
	})
}

// Request implements session.
func (b *bridged) Request(ctx context.Context, r *client.Request) ([]byte, error) {
	own := *r
	if r.Method == mcp.MethodComplete && !b.s.authorizer.Exchanges() {
		return b.session.Request(ctx, r)
	}
	return b.pass(ctx, &exchange{
		alone: r.Method == mcp.MethodPromptsGet,
		send: func(ctx context.Context, to session, aside client.Aside) ([]byte, error) {
			own.Aside = aside
			return to.Request(ctx, &own)
		},
		keep: func() { own.Params, own.Meta = bytes.Clone(own.Params), bytes.Clone(own.Meta) },
	})
}

// pass passes a request on.
func (b *bridged) pass(ctx context.Context, x *exchange) ([]byte, error) {
	s, c := b.s, b.c
	shared, speaks := b.session.(*client.Session)
	if !speaks {
		return x.send(ctx, b.session, client.Aside{Progress: c.Progress})
	}
	ctx = s.actFor(ctx, c)
	w := wishesOf(c, s.config.Stdio)
	modern := mcp.IsModern(shared.Version())
	if !modern && c.State != nil {
		return nil, notFound(c.State)
	}
	switch {
	case s.config.Stdio != nil && s.config.Stdio.PerClient:
		b.l.users.Add(-1) // It is not used for this call.
		defer b.l.users.Add(1)
		return s.passToChild(ctx, c, x, w, modern)
	case modern:
		return s.passModern(ctx, c, x, w, shared)
	case s.needsOwn(x, w, shared):
		return s.passAlone(ctx, c, x, w)
	}
	if w.level != "" && s.config.Stdio == nil && shared.Abilities().Logging {
		b.l.levelled.Do(func() {
			ctx, cancel := context.WithTimeout(s.m.life, s.m.timing.Handshake)
			defer cancel()
			// One that does not want to hear of it tells what it likes.
			_ = shared.SetLevel(ctx, levelShared)
		})
	}
	return x.send(ctx, shared, client.Aside{Progress: c.Progress, Notify: notifier(c, w)})
}

// actFor has requests of a call carry a token of its caller, where that is
// wanted.
func (s *source) actFor(ctx context.Context, c *call.Call) context.Context {
	if !s.authorizer.Exchanges() {
		return ctx
	}
	return outbound.WithCaller(ctx, c.Caller)
}

// needsOwn: a call of a legacy server needs a session of its own where the
// server may ask its caller, or log much for them, and where it carries a token
// of its caller: a session belongs to who opened it.
func (s *source) needsOwn(x *exchange, w wishes, shared *client.Session) bool {
	asks := x.alone && (w.asked || w.level == levelDebug && shared.Abilities().Logging)
	return s.config.Stdio == nil && (asks || s.authorizer.Exchanges())
}

// notifier tells the caller what it wants to be told; nil when it wants nothing.
func notifier(c *call.Call, w wishes) func(string, json.RawMessage) {
	if c.Client == nil || w.level == "" && !w.asked {
		return nil
	}
	return func(method string, params json.RawMessage) {
		if method != mcp.NotificationMessage || wants(w.level, params) {
			c.Client.Notify(method, params)
		}
	}
}

// passModern asks a modern server, and what it wants to know it asks the
// caller: one that is modern too gets the question as it stands.
func (s *source) passModern(ctx context.Context, c *call.Call, x *exchange, w wishes, to session) ([]byte, error) {
	aside := client.Aside{
		Capabilities: w.capabilities, LogLevel: w.level, Responses: c.Responses, State: c.State,
		Progress: c.Progress, Notify: notifier(c, w),
	}
	if c.Client != nil && !c.Client.Modern() {
		return s.rounds(ctx, c, x, aside, to)
	}
	raw, err := x.send(ctx, to, aside)
	if err != nil {
		return nil, err
	}
	asked := questions(raw)
	switch {
	case asked == nil:
		return raw, nil
	case c.Client == nil:
		return nil, s.cannotAsk()
	}
	result := &call.Result{Input: &call.Input{Requests: asked.Get("inputRequests"), State: asked.Get("requestState")}}
	if meta := asked.Get("_meta"); wire.IsObject(meta) {
		result.Meta = meta
	}
	return nil, &askedError{result}
}

const inputRequired = "input_required"

// questions gives a result that asks for more; nil for any other.
func questions(raw []byte) wire.Object {
	if !bytes.Contains(raw, []byte(inputRequired)) {
		return nil // Most are, and need not be read twice.
	}
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return nil
	}
	if kind, _ := object.Text("resultType"); kind != inputRequired {
		return nil
	}
	return object
}

func (s *source) cannotAsk() error {
	return call.Fail(call.CannotAsk, "the upstream %s has a question that this client cannot be asked", s.config.Name)
}

// notFound says of a state that no call waits for: a call that waited would
// have been found. A legacy server gives none of its own, so what has not the
// form of ours was made or changed by somebody else.
func notFound(state []byte) error {
	if _, id, ours := call.ParkedIn(state); ours && parkedID.MatchString(id) {
		return expired()
	}
	failure := call.Fail(call.QuestionExpired, "requestState is not one that this server gave")
	failure.RPC = &call.RPCError{Code: mcp.CodeInvalidParams, Message: failure.Message}
	return failure
}

// parkedID is the form of rand.Text.
var parkedID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

func expired() error {
	return call.Fail(call.QuestionExpired, "the question expired, call again")
}
