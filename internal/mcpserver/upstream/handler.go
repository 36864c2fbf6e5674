// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// maxHops is through how many shared servers a call may go.
	maxHops = 8
	// maxWords of an upstream's error are shown to the caller, in bytes.
	maxWords = 2000
)

// handler passes the calls of one tool on.
type handler struct {
	m      *Manager
	target serverconfig.UpstreamTool
	params []schema.HeaderParam
}

// Handler makes the handler of a tool of an upstream. It does no I/O, and
// finds the upstream at each call: a connection may be replaced under it.
func (m *Manager) Handler(target *serverconfig.UpstreamTool, input *schema.Schema) call.Handler {
	return &handler{m: m, target: *target, params: input.Headers()}
}

// Call implements call.Handler.
func (h *handler) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	if c.Hops >= maxHops {
		return nil, call.Fail(call.HopLimit, "the call came through %d servers and is not passed on", c.Hops)
	}
	result, err := h.call(ctx, c)
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
	h.m.metrics.call(h.target.Upstream, outcome)
	return result, err
}

func (h *handler) call(ctx context.Context, c *call.Call) (*call.Result, error) {
	s := h.m.source(h.target.Upstream)
	if s == nil {
		return nil, h.unavailable(nil)
	}
	request := &client.Call{
		Tool: h.target.Tool, Args: c.RawArgs, Header: client.Mirror(h.params, c.Args), Meta: meta(c), Aside: client.Aside{Progress: c.Progress},
	}
	for attempt := 0; ; attempt++ {
		l, done, ok := s.use()
		if !ok {
			return nil, h.unavailable(nil)
		}
		raw, err := l.Call(ctx, request)
		done()
		if client.ReasonOf(err) == client.SessionLost {
			l.dead.Store(true)
		}
		switch {
		case err == nil:
			return h.result(raw)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case h.suspicious(err):
			s.suspect()
		}
		// A session that the server does not know has run nothing.
		if client.ReasonOf(err) == client.SessionLost && attempt == 0 && s.after(ctx, l) {
			continue
		}
		return nil, h.failure(err)
	}
}

// meta is what of _meta goes on: the caller's own, and the count of hops.
func meta(c *call.Call) []byte {
	out := c.Meta[:len(c.Meta):len(c.Meta)]
	if len(out) > 0 {
		out = append(out, ',')
	}
	return strconv.AppendInt(append(out, `"`+mcp.MetaHops+`":`...), int64(c.Hops)+1, 10)
}

// suspicious: the error may be the connection's, not only the call's.
func (h *handler) suspicious(err error) bool {
	var rpc *client.RPCError
	if errors.As(err, &rpc) {
		return rpc.Status >= 400
	}
	return client.ReasonOf(err) != client.TooLarge
}

func (h *handler) unavailable(cause error) error {
	return call.Fail(call.UpstreamUnavailable, "the upstream %s does not answer, try again later", h.target.Upstream).Because(cause)
}

// failure puts an error into what the caller sees. An error that the upstream
// answered with is the tool's own, in its words.
func (h *handler) failure(err error) error {
	var rpc *client.RPCError
	if errors.As(err, &rpc) {
		words := clip(rpc.Message)
		if words == "" {
			words = "JSON-RPC error " + strconv.Itoa(rpc.Code)
		}
		return call.Fail(call.UpstreamError, "%s", words)
	}
	if client.ReasonOf(err) == client.TooLarge {
		return call.Fail(call.ResultTooLarge, "the answer of the upstream %s is larger than %d bytes", h.target.Upstream, h.m.maxBytes.Load())
	}
	return h.unavailable(err)
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

// result takes a tool's answer apart.
func (h *handler) result(raw []byte) (*call.Result, error) {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return nil, call.Fail(call.InvalidResult, "the answer of the upstream %s cannot be read", h.target.Upstream)
	}
	if kind := object.Get("resultType"); kind != nil {
		if word, _ := wire.Text(kind); word != "complete" {
			return nil, call.Fail(call.InvalidResult, "the upstream %s answers in a way that cannot be passed on (it may want to ask back)", h.target.Upstream)
		}
	}
	out := &call.Result{IsError: string(object.Get("isError")) == "true", Structured: given(object.Get("structuredContent"))}
	if content := object.Get("content"); len(content) > 0 && content[0] == '[' {
		out.Content = content
	}
	if m := object.Get("_meta"); wire.IsObject(m) {
		out.Meta = m
	}
	return out, nil
}

func given(raw []byte) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
