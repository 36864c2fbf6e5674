// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// maxHops is through how many shared servers a call may go.
	maxHops = 8
	// maxWords of an upstream's error are shown to the caller, in bytes.
	maxWords = 2000
)

// pass does what c asks for over the pooled session of an upstream, and counts
// how that ended. do may be called twice, the second time with another session.
func (m *Manager) pass(ctx context.Context, c *call.Call, upstream string, do func(session) (*call.Result, error)) (*call.Result, error) {
	if c.Hops >= maxHops {
		return nil, call.Fail(call.HopLimit, "the call came through %d servers and is not passed on", c.Hops)
	}
	c.Upstream = upstream
	result, err := m.attempt(ctx, c, upstream, do)
	outcome := "ok"
	var failure *call.Error
	switch {
	case errors.As(err, &failure):
		outcome = string(failure.Reason)
	case err != nil:
		outcome = string(call.Cancelled)
	case result.IsError:
		outcome = "error"
	}
	m.metrics.call(upstream, outcome)
	return result, err
}

func (m *Manager) attempt(ctx context.Context, c *call.Call, upstream string, do func(session) (*call.Result, error)) (*call.Result, error) {
	if p := m.parking.take(c, upstream); p != nil {
		result, err := do(&resumed{session: p.e.session, p: p, c: c})
		return m.conclude(ctx, c, upstream, result, err)
	}
	s := m.source(upstream)
	if s == nil {
		return nil, call.Fail(call.UpstreamUnavailable, "this server has no upstream %s that can be used", upstream)
	}
	for attempt := 0; ; attempt++ {
		l, done, ok := s.use()
		if !ok {
			return nil, unavailable(upstream, nil)
		}
		result, err := do(&bridged{session: l.session, s: s, l: l, c: c})
		done()
		lost := client.ReasonOf(err) == client.SessionLost
		if lost {
			l.dead.Store(true)
		}
		if worrying(ctx, err) {
			s.suspect()
		}
		// A session that the server does not know has run nothing.
		if lost && ctx.Err() == nil && attempt == 0 && s.after(ctx, l) {
			continue
		}
		return m.conclude(ctx, c, upstream, result, err)
	}
}

// conclude gives what the caller gets of the outcome of a call.
func (m *Manager) conclude(ctx context.Context, c *call.Call, upstream string, result *call.Result, err error) (*call.Result, error) {
	var final *call.Error
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &final):
		return nil, final
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	asked, failure := translated(c, upstream, err)
	switch {
	case asked != nil:
		return asked, nil
	case failure != nil:
		return nil, failure
	}
	return nil, m.failure(upstream, err)
}

// worrying: what became of a call speaks against the connection, or its end of
// which nothing was heard in time.
func worrying(ctx context.Context, err error) bool {
	var final *call.Error
	var asked *askedError
	switch {
	case err == nil || errors.As(err, &final) || errors.As(err, &asked):
		return false
	case ctx.Err() != nil:
		return errors.Is(context.Cause(ctx), call.ErrTimeout)
	}
	return suspicious(err)
}

// suspicious: the error may be the connection's, not only the call's.
func suspicious(err error) bool {
	var rpc *client.RPCError
	if errors.As(err, &rpc) {
		return rpc.Status >= 400
	}
	return client.ReasonOf(err) != client.TooLarge
}

func unavailable(upstream string, cause error) error {
	return call.Fail(call.UpstreamUnavailable, "the upstream %s does not answer, try again later", upstream).Because(cause)
}

// failure puts an error into what the caller sees. An error that the upstream
// answered with is passed on in its words.
func (m *Manager) failure(upstream string, err error) error {
	var rpc *client.RPCError
	if errors.As(err, &rpc) {
		return call.Fail(call.UpstreamError, "%s", wordsOf(rpc))
	}
	if client.ReasonOf(err) == client.TooLarge {
		return call.Fail(call.ResultTooLarge, "the answer of the upstream %s is larger than %d bytes", upstream, m.maxBytes.Load())
	}
	return unavailable(upstream, err)
}

func wordsOf(rpc *client.RPCError) string {
	if words := clip(rpc.Message); words != "" {
		return words
	}
	return "JSON-RPC error " + strconv.Itoa(rpc.Code)
}

// clip bounds a peer's words and keeps them UTF-8.
func clip(words string) string {
	words = strings.ToValidUTF8(words, "?")
	if len(words) <= maxWords {
		return words
	}
	words = words[:maxWords]
	for !utf8.ValidString(words) {
		words = words[:len(words)-1]
	}
	return words + "…"
}

// rest gives the _meta of a result, and what of it is neither known nor the
// protocol's: members without braces.
func rest(result wire.Object, known ...string) (meta, extra json.RawMessage) {
	for _, field := range result {
		switch {
		case field.Key == "_meta":
			if wire.IsObject(field.Raw) {
				meta = field.Raw
			}
			continue
		case slices.Contains(known, field.Key), slices.Contains(protocols, field.Key):
			continue
		case len(extra) > 0:
			extra = append(extra, ',')
		}
		extra = append(append(wire.AppendString(extra, field.Key), ':'), field.Raw...)
	}
	return meta, extra
}

// protocols are members of results that each server writes for itself.
var protocols = []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
