// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// reading reads resources of an upstream, whatever their URI.
type reading struct {
	m        *Manager
	upstream string
}

// Resource makes the handler that reads resources of an upstream. It does no
// I/O. It is a call.Completer of templates.
func (m *Manager) Resource(target *serverconfig.UpstreamResource) call.Handler {
	return &reading{m: m, upstream: target.Upstream}
}

// Call implements call.Handler. NotFound: the upstream has no such resource.
func (h *reading) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	request := &client.Request{
		Method: mcp.MethodResourcesRead, Name: c.URI, Params: append([]byte(`"uri":`), wire.AppendString(nil, c.URI)...), Meta: meta(c),
	}
	return h.m.pass(ctx, c, h.upstream, func(s session) (*call.Result, error) {
		if !s.Abilities().Resources {
			return nil, unknown("the upstream %s has no resources", h.upstream)
		}
		raw, err := s.Request(ctx, request)
		var rpc *client.RPCError
		if errors.As(err, &rpc) && saysUnknown(rpc) {
			return nil, unknown("the upstream %s has no such resource", h.upstream)
		}
		if err != nil {
			return nil, err
		}
		return read(raw, h.upstream)
	})
}

func unknown(format, upstream string) error { return call.Fail(call.NotFound, format, upstream) }

// saysUnknown: revisions and servers differ in how they say that there is no
// such resource.
func saysUnknown(rpc *client.RPCError) bool {
	switch rpc.Code {
	case mcp.CodeResourceNotFound, mcp.CodeInvalidParams, mcp.CodeMethodNotFound:
		return true
	}
	return false
}

// read takes the answer to resources/read apart.
func read(raw []byte, upstream string) (*call.Result, error) {
	object, failure := complete(raw, upstream)
	if failure != nil {
		return nil, failure
	}
	contents := object.Get("contents")
	if len(contents) == 0 || contents[0] != '[' {
		return nil, unreadable(upstream)
	}
	out := &call.Result{Content: contents}
	if ttl, _ := client.Caching(object); ttl != nil {
		ms := ttl.Milliseconds()
		out.TTL = &ms
	}
	out.Meta, out.Extra = rest(object, "contents")
	return out, nil
}

// complete reads a result that needs nothing further of the caller.
func complete(raw []byte, upstream string) (wire.Object, *call.Error) {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return nil, unreadable(upstream)
	}
	if kind := object.Get("resultType"); kind != nil {
		if word, _ := wire.Text(kind); word != "complete" {
			return nil, call.Fail(call.InvalidResult, "the upstream %s answers in a way that cannot be passed on (it may want to ask back)", upstream)
		}
	}
	return object, nil
}

func unreadable(upstream string) *call.Error {
	return call.Fail(call.InvalidResult, "the answer of the upstream %s cannot be read", upstream)
}

// Complete implements call.Completer.
func (h *reading) Complete(ctx context.Context, c *call.Call, params []byte) (*call.Result, error) {
	ref := append([]byte(`{"type":"ref/resource","uri":`), wire.AppendString(nil, c.Tool)...)
	return h.m.complete(ctx, c, h.upstream, append(ref, '}'), params)
}

// prompting gives one prompt of an upstream.
type prompting struct {
	m      *Manager
	target serverconfig.UpstreamPrompt
}

// Prompt makes the handler of a prompt of an upstream. It does no I/O. It is a
// call.Completer of its arguments.
func (m *Manager) Prompt(target *serverconfig.UpstreamPrompt) call.Handler {
	return &prompting{m: m, target: *target}
}

// Call implements call.Handler.
func (h *prompting) Call(ctx context.Context, c *call.Call) (*call.Result, error) {
	request := &client.Request{Method: mcp.MethodPromptsGet, Name: h.target.Prompt, Meta: meta(c)}
	request.Params = append([]byte(`"name":`), wire.AppendString(nil, h.target.Prompt)...)
	request.Params = wire.AppendField(request.Params, "arguments", c.RawArgs)
	return h.m.pass(ctx, c, h.target.Upstream, func(s session) (*call.Result, error) {
		raw, err := s.Request(ctx, request)
		var rpc *client.RPCError
		if errors.As(err, &rpc) && rpc.Code == mcp.CodeInvalidParams {
			return nil, call.Fail(call.InvalidArguments, "%s", wordsOf(rpc))
		}
		if err != nil {
			return nil, err
		}
		object, failure := complete(raw, h.target.Upstream)
		if failure != nil {
			return nil, failure
		}
		messages := object.Get("messages")
		if len(messages) == 0 || messages[0] != '[' {
			return nil, unreadable(h.target.Upstream)
		}
		out := &call.Result{Content: messages}
		out.Meta, out.Extra = rest(object, "messages")
		return out, nil
	})
}

// Complete implements call.Completer.
func (h *prompting) Complete(ctx context.Context, c *call.Call, params []byte) (*call.Result, error) {
	ref := append([]byte(`{"type":"ref/prompt","name":`), wire.AppendString(nil, h.target.Prompt)...)
	return h.m.complete(ctx, c, h.target.Upstream, append(ref, '}'), params)
}

// complete passes completion/complete on. An upstream that declares none, or
// does not know the method, completes nothing.
func (m *Manager) complete(ctx context.Context, c *call.Call, upstream string, ref, params []byte) (*call.Result, error) {
	request := &client.Request{Method: mcp.MethodComplete, Params: append([]byte(`"ref":`), ref...), Meta: meta(c)}
	if len(params) > 0 {
		request.Params = append(append(request.Params, ','), params...)
	}
	nothing := &call.Result{Content: []byte(`{"values":[],"total":0,"hasMore":false}`)}
	return m.pass(ctx, c, upstream, func(s session) (*call.Result, error) {
		if !s.Abilities().Completions {
			return nothing, nil
		}
		raw, err := s.Request(ctx, request)
		var rpc *client.RPCError
		switch {
		case errors.As(err, &rpc) && rpc.Code == mcp.CodeMethodNotFound:
			return nothing, nil
		case errors.As(err, &rpc) && rpc.Code == mcp.CodeInvalidParams:
			return nil, call.Fail(call.InvalidArguments, "%s", wordsOf(rpc))
		case err != nil:
			return nil, err
		}
		object, failure := complete(raw, upstream)
		if failure != nil {
			return nil, failure
		}
		out := &call.Result{Content: object.Get("completion")}
		if !wire.IsObject(out.Content) {
			return nil, unreadable(upstream)
		}
		out.Meta, out.Extra = rest(object, "completion")
		return out, nil
	})
}
