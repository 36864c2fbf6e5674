// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// readResource answers resources/read: the resource of that URI, else the
// first template that makes it.
func (e *Engine) readResource(ctx context.Context, r *Request) Reply {
	uri, ok := r.Message.Params.Text("uri")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "uri must be a string"})
	}
	resource, variables := r.resource(ctx, uri)
	if resource == nil {
		return e.unknownResource(r, uri)
	}
	c := resourceCall(uri, variables)
	back := e.passOn(r, c)
	sources := r.sources(ctx, resource, uri)
	result, failure := e.run(ctx, r, &resource.Entry, c, func(ctx context.Context, c *call.Call) (*call.Result, error) {
		return readFirst(ctx, c, sources)
	})
	switch {
	case failure != nil && failure.Reason == call.NotFound:
		return back.finish(e.unknownResource(r, uri))
	case failure != nil:
		return back.finish(r.refuse(failure))
	case result.Input != nil:
		return back.finish(Reply{Body: appendInput(r, result)})
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"contents":`...)
	out = append(out, result.Content...)
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
		out = appendPrivate(out, resource, result)
	}
	out = appendExtra(out, result)
	out = appendCallMeta(out, r, nil, result.Meta)
	return back.finish(Reply{Body: append(out, "}}"...)})
}

// readFirst gives the answer of the first source that knows the resource.
// When none does, one that could not say outweighs those that said no.
func readFirst(ctx context.Context, c *call.Call, sources []*registry.Resource) (*call.Result, error) {
	var failure error
	for _, source := range sources {
		result, err := source.Handler.Call(ctx, c)
		if err == nil {
			return result, nil
		}
		var known *call.Error
		if ctx.Err() != nil || !source.Foreign || !errors.As(err, &known) {
			return nil, err
		}
		if failure == nil || known.Reason != call.NotFound {
			failure = err
		}
	}
	return nil, failure
}

func resourceCall(uri string, variables map[string]string) *call.Call {
	args := make(map[string]any, len(variables))
	for name, value := range variables {
		args[name] = value
	}
	return &call.Call{Kind: call.Resource, URI: uri, Args: args}
}

// appendPrivate writes the fields of a cacheable result: what one caller read
// is nobody else's.
func appendPrivate(dst []byte, resource *registry.Resource, result *call.Result) []byte {
	ttl := resource.TTL
	if result.TTL != nil {
		ttl = *result.TTL
	}
	dst = append(dst, `,"ttlMs":`...)
	dst = strconv.AppendInt(dst, ttl, 10)
	return append(dst, `,"cacheScope":"private"`...)
}

func appendServerInfo(dst []byte, r *Request) []byte {
	dst = append(dst, `,"_meta":{"`+mcp.MetaServerInfo+`":`...)
	dst = append(dst, r.Snapshot.ServerInfo...)
	return append(dst, '}')
}

// unknownResource: the revisions before 2026-07-28 have a code of their own
// for it, which later ones must not see.
func (e *Engine) unknownResource(r *Request, uri string) Reply {
	e.metrics.Entry(call.Resource.String(), "", outcomeUnknown)
	r.seen.unknown()
	code := mcp.CodeInvalidParams
	if r.Era == Legacy {
		code = mcp.CodeResourceNotFound
	}
	data := append(wire.AppendString([]byte(`{"uri":`), clip(uri)), '}')
	return r.fail(OK, &wire.Error{Code: code, Message: "Resource not found", Data: data})
}

// refuse answers with an error where the method has no result that tells of
// one.
func (r *Request) refuse(failure *call.Error) Reply {
	if failure.RPC != nil {
		return r.declared(failure.RPC)
	}
	status, code := OK, mcp.CodeInternalError
	switch failure.Reason {
	case call.InvalidArguments, call.NotFound:
		code = mcp.CodeInvalidParams
	case call.RateLimited, call.ConcurrencyLimit, call.BudgetExceeded:
		status, code = TooManyRequests, mcp.CodeTooManyRequests
	case call.ResultTooLarge:
		code = mcp.CodeTooLarge
	}
	return r.fail(status, &wire.Error{Code: code, Message: failure.Message, Data: wire.Data(string(failure.Reason))})
}
