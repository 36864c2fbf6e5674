// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// maxCompletions is how many values one answer may have.
const maxCompletions = 100

// complete answers completion/complete from what is declared: the values that
// begin as the caller does, whatever the case.
func (e *Engine) complete(ctx context.Context, r *Request) Reply {
	argument, err := wire.DecodeObject(r.Message.Params.Get("argument"))
	name, named := argument.Text("name")
	value, valued := argument.Text("value")
	if err != nil || !named || !valued {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "argument must be an object with the strings name and value"})
	}
	if entry := r.completedBy(ctx); entry != nil {
		return e.completeForeign(ctx, r, entry)
	}
	declared, invalid := r.completions(ctx, name)
	if invalid != nil {
		return r.fail(OK, invalid)
	}
	var values []string
	for _, candidate := range declared {
		if hasPrefixFold(candidate, value) {
			values = append(values, candidate)
		}
	}
	total := len(values)
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"completion":{"values":[`...)
	for i, v := range values[:min(total, maxCompletions)] {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendString(out, v)
	}
	out = append(out, `],"total":`...)
	out = strconv.AppendInt(out, int64(total), 10)
	out = append(out, `,"hasMore":`...)
	out = strconv.AppendBool(out, total > maxCompletions)
	out = append(out, '}')
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
		out = appendServerInfo(out, r)
	}
	return Reply{Body: append(out, "}}"...)}
}

// completions are what is declared for an argument of what ref names.
func (r *Request) completions(ctx context.Context, name string) ([]string, *wire.Error) {
	invalid := func(text string) *wire.Error { return &wire.Error{Code: mcp.CodeInvalidParams, Message: text} }
	ref, err := wire.DecodeObject(r.Message.Params.Get("ref"))
	if err != nil {
		return nil, invalid("ref must be an object")
	}
	switch kind, _ := ref.Text("type"); kind {
	case "ref/prompt":
		of, _ := ref.Text("name")
		prompt := r.prompt(ctx, of)
		if prompt == nil {
			return nil, invalid("unknown prompt: " + clip(of))
		}
		if !prompt.Takes(name) {
			return nil, invalid("the prompt takes no argument " + clip(name))
		}
		return prompt.Completions[name], nil
	case "ref/resource":
		uri, _ := ref.Text("uri")
		template := r.template(ctx, uri)
		if template == nil {
			return nil, invalid("unknown resource template: " + clip(uri))
		}
		if !template.Template.Has(name) {
			return nil, invalid("the template has no variable " + clip(name))
		}
		return template.Completions[name], nil
	}
	return nil, invalid("ref.type must be ref/prompt or ref/resource")
}

// completedBy gives the entry that ref names, when an upstream completes it.
func (r *Request) completedBy(ctx context.Context) *registry.Entry {
	ref, err := wire.DecodeObject(r.Message.Params.Get("ref"))
	if err != nil {
		return nil
	}
	switch kind, _ := ref.Text("type"); kind {
	case "ref/prompt":
		name, _ := ref.Text("name")
		if p := r.prompt(ctx, name); p != nil && p.Foreign {
			return &p.Entry
		}
	case "ref/resource":
		uri, _ := ref.Text("uri")
		if t := r.template(ctx, uri); t != nil && t.Foreign {
			return &t.Entry
		}
	}
	return nil
}

// completeForeign passes completion/complete on.
func (e *Engine) completeForeign(ctx context.Context, r *Request, entry *registry.Entry) Reply {
	var params []byte
	for _, field := range r.Message.Params {
		if field.Key == "ref" || field.Key == "_meta" {
			continue
		}
		if len(params) > 0 {
			params = append(params, ',')
		}
		params = append(append(wire.AppendString(params, field.Key), ':'), field.Raw...)
	}
	c := &call.Call{Kind: call.Completion, Args: map[string]any{}}
	back := e.passOn(r, c)
	result, failure := e.run(ctx, r, entry, c, func(ctx context.Context, c *call.Call) (*call.Result, error) {
		completer, ok := entry.Handler.(call.Completer)
		if !ok {
			return nil, call.Fail(call.Internal, "nothing completes the entry")
		}
		return completer.Complete(ctx, c, params)
	})
	if failure != nil {
		return back.finish(r.refuse(failure))
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"completion":`...)
	out = append(out, result.Content...)
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	out = appendExtra(out, result)
	out = appendCallMeta(out, r, nil, result.Meta)
	return back.finish(Reply{Body: append(out, "}}"...)})
}

func hasPrefixFold(text, prefix string) bool {
	return strings.HasPrefix(strings.ToLower(text), strings.ToLower(prefix))
}
