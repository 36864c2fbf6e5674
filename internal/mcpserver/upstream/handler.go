// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// handler passes the calls of one tool on.
type handler struct {
	m      *Manager
	target serverconfig.UpstreamTool
	params []schema.HeaderParam

	mu sync.Mutex
	// seen is the upstream's definition that params are of, of a declared tool.
	seen json.RawMessage
}

// Tool makes the handler of a tool of an upstream. It does no I/O, and finds
// the upstream at each call: a connection may be replaced under it.
func (m *Manager) Tool(target *serverconfig.UpstreamTool, input *schema.Schema) call.Handler {
	return &handler{m: m, target: *target, params: input.Headers()}
}

// Call implements call.Handler.
func (h *handler) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	request := &client.Call{
		Tool: h.target.Tool, Args: c.RawArgs, Header: client.Mirror(h.mirrored(), c.Args), Meta: meta(c), Aside: client.Aside{Progress: c.Progress},
	}
	return h.m.pass(ctx, c, h.target.Upstream, func(s session) (*call.Result, error) {
		if d, ok := itself(s).(answers); ok {
			return d.Handle(ctx, h.target.Tool, c)
		}
		raw, err := s.Call(ctx, request)
		if err != nil {
			return nil, err
		}
		return h.result(raw)
	})
}

// mirrored are the arguments that the upstream wants in headers. The schema of
// a declared tool does not say: what the upstream lists does.
func (h *handler) mirrored() []schema.HeaderParam {
	if h.target.Listed {
		return h.params
	}
	definition := h.m.definition(h.target.Upstream, h.target.Tool)
	h.mu.Lock()
	defer h.mu.Unlock()
	if !bytes.Equal(h.seen, definition) {
		h.seen, h.params = definition, nil
		if object, err := wire.DecodeObject(definition); err == nil {
			if input, err := schema.CompileInput(object.Get("inputSchema")); err == nil {
				h.params = input.Headers()
			}
		}
	}
	return h.params
}

// definition of a tool as its upstream lists it, nil while that is unknown.
func (m *Manager) definition(upstream, tool string) json.RawMessage {
	s := m.source(upstream)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing == nil {
		return nil
	}
	for _, t := range s.listing.Tools {
		if t.ID == tool {
			return t.Definition
		}
	}
	return nil
}

// meta is what of _meta goes on: the caller's own, and the count of hops.
func meta(c *call.Call) []byte {
	out := c.Meta[:len(c.Meta):len(c.Meta)]
	if len(out) > 0 {
		out = append(out, ',')
	}
	return strconv.AppendInt(append(out, `"`+mcp.MetaHops+`":`...), int64(c.Hops)+1, 10)
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
	out.Meta, out.Extra = rest(object, "content", "structuredContent", "isError")
	return out, nil
}

func given(raw []byte) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}
