// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// exchange is a request of a caller that is passed on to an upstream, whatever
// the eras of both.
type exchange struct {
	// upstream by its name; of says what is asked for, to tell one call from
	// another.
	upstream, of string
	// send sends it. What it sends must not be the caller's memory: it may be
	// used after the caller's handler returned.
	send func(ctx context.Context, s session, aside client.Aside) ([]byte, error)
}

// outcome of an exchange: the raw result, or an answer that asks the caller
// for more.
type outcome struct {
	raw   []byte
	asked *call.Result
}

// pass passes a request on. The error is a *call.Error, an error of package
// client, or the cause of ctx.
func (m *Manager) pass(ctx context.Context, c *call.Call, x *exchange) (outcome, error) {
	if p := m.parking.take(c, x); p != nil {
		return p.resume(ctx, c)
	}
	s := m.source(x.upstream)
	if s == nil {
		return outcome{}, m.unavailable(x.upstream, nil)
	}
	for attempt := 0; ; attempt++ {
		l, done, ok := s.use()
		if !ok {
			return outcome{}, m.unavailable(x.upstream, nil)
		}
		out, err := s.pass(ctx, c, x, l)
		done()
		lost := client.ReasonOf(err) == client.SessionLost
		switch {
		case err == nil:
			return out, nil
		case ctx.Err() != nil:
			return outcome{}, context.Cause(ctx)
		case suspicious(err):
			if lost {
				l.dead.Store(true)
			}
			s.suspect()
		}
		// A session that the server does not know has run nothing.
		if lost && attempt == 0 && s.after(ctx, l) {
			continue
		}
		return outcome{}, err
	}
}

// pass passes a request on to the upstream that l speaks to.
func (s *source) pass(ctx context.Context, c *call.Call, x *exchange, l *lease) (outcome, error) {
	w := wantedOf(c, s.config.Stdio)
	shared, speaks := l.session.(*client.Session)
	if !speaks {
		raw, err := x.send(ctx, l.session, client.Aside{Progress: c.Progress})
		return outcome{raw: raw}, err
	}
	modern := mcp.IsModern(shared.Version())
	if !modern && call.IsParked(c.State) {
		return outcome{}, expired()
	}
	switch {
	case s.config.Stdio != nil && s.config.Stdio.PerClient:
		return s.passToChild(ctx, c, x, w, modern)
	case modern:
		return s.passModern(ctx, c, x, w, shared)
	case s.config.Stdio == nil && (w.asked || w.level == levelDebug && shared.Abilities().Logging):
		return s.passAlone(ctx, c, x, w)
	}
	if w.level != "" && s.config.Stdio == nil && shared.Abilities().Logging {
		l.tells.Do(func() {
			ctx, cancel := context.WithTimeout(s.m.life, s.m.timing.Handshake)
			defer cancel()
			// One that does not want to hear of it tells what it likes.
			_ = shared.SetLevel(ctx, levelShared)
		})
	}
	raw, err := x.send(ctx, shared, client.Aside{Progress: c.Progress, Notify: notifier(c, w)})
	return outcome{raw: raw}, err
}

// notifier tells the caller what it wants to be told; nil when it wants nothing.
func notifier(c *call.Call, w wanted) func(string, json.RawMessage) {
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
func (s *source) passModern(ctx context.Context, c *call.Call, x *exchange, w wanted, to session) (outcome, error) {
	aside := client.Aside{
		Capabilities: w.capabilities, LogLevel: w.level, Responses: c.Responses, State: c.State,
		Progress: c.Progress, Notify: notifier(c, w),
	}
	if c.Client != nil && !c.Client.Modern() {
		return s.rounds(ctx, c, x, aside, to)
	}
	raw, err := x.send(ctx, to, aside)
	if err != nil {
		return outcome{}, err
	}
	asked := questions(raw)
	switch {
	case asked == nil:
		return outcome{raw: raw}, nil
	case c.Client == nil:
		return outcome{}, s.m.cannotAsk(x.upstream)
	}
	result := &call.Result{Input: &call.Input{Requests: asked.Get("inputRequests"), State: asked.Get("requestState")}}
	if meta := asked.Get("_meta"); wire.IsObject(meta) {
		result.Meta = meta
	}
	return outcome{asked: result}, nil
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

func (m *Manager) cannotAsk(upstream string) error {
	return call.Fail(call.CannotAsk, "the upstream %s has a question that this client cannot be asked", upstream)
}

func expired() error {
	return call.Fail(call.QuestionExpired, "the question expired, call again")
}
