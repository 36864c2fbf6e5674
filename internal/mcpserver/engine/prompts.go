// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// getPrompt answers prompts/get.
func (e *Engine) getPrompt(ctx context.Context, r *Request) Reply {
	name, ok := r.Message.Params.Text("name")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "name must be a string"})
	}
	prompt := r.prompt(ctx, name)
	if prompt == nil {
		e.metrics.Entry(call.Prompt.String(), "", outcomeUnknown)
		r.seen.unknown()
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "unknown prompt: " + clip(name)})
	}
	args, invalid := r.Arguments()
	if invalid == nil && !prompt.Foreign {
		invalid = checkArguments(prompt, args)
	}
	if invalid != nil {
		return r.fail(OK, invalid)
	}
	c := &call.Call{Kind: call.Prompt, Args: args, RawArgs: r.RawArguments()}
	c.Read = func(ctx context.Context, uri string) (*call.Result, error) { return r.readFor(ctx, c, uri) }
	back := e.passOn(r, c)
	result, failure := e.runEntry(ctx, r, &prompt.Entry, c)
	switch {
	case failure != nil:
		return back.finish(r.refuse(failure))
	case result.Input != nil:
		return back.finish(Reply{Body: appendInput(r, result)})
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"messages":`...)
	out = append(out, result.Content...)
	if prompt.Description != nil && !prompt.Foreign {
		out = wire.AppendField(out, "description", prompt.Description)
	}
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	out = appendExtra(out, result)
	out = appendCallMeta(out, r, nil, result.Meta)
	return back.finish(Reply{Body: append(out, "}}"...)})
}

// checkArguments: all that are required, none that is not declared, and every
// one a string.
func checkArguments(prompt *registry.Prompt, args map[string]any) *wire.Error {
	invalid := func(text string) *wire.Error {
		return &wire.Error{Code: mcp.CodeInvalidParams, Message: text, Data: wire.Data(string(call.InvalidArguments))}
	}
	given := 0
	for _, a := range prompt.Arguments {
		value, ok := args[a.Name]
		if !ok {
			if a.Required {
				return invalid("the argument " + a.Name + " is missing")
			}
			continue
		}
		given++
		if _, ok := value.(string); !ok {
			return invalid("the argument " + a.Name + " must be a string")
		}
	}
	if given == len(args) {
		return nil
	}
	for name := range args {
		if !prompt.Takes(name) {
			return invalid("the prompt takes no argument " + clip(name))
		}
	}
	return nil
}

// readFor reads a resource within the call of a prompt, for its caller.
func (r *Request) readFor(ctx context.Context, outer *call.Call, uri string) (*call.Result, error) {
	notFound := call.Fail(call.NotFound, "the prompt embeds a resource that this server does not have")
	resource, variables := r.resource(ctx, uri)
	if resource == nil {
		return nil, notFound
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running := resource.Enter(cancel)
	if running == nil {
		return nil, notFound
	}
	defer running.Leave()
	c := resourceCall(uri, variables)
	c.Hops = outer.Hops
	c.Tool, c.Metadata, c.Entry, c.Caller = resource.Name, resource.Metadata, resource.Vars, outer.Caller
	c.MaxBytes, c.RawArgs = outer.MaxBytes, []byte("{}")
	return readFirst(ctx, c, r.sources(ctx, resource, uri))
}
