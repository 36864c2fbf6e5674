// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

func (e *Engine) discover(_ context.Context, r *Request) Reply {
	return Reply{Body: wire.AppendResult(r.Out, r.Message.ID, r.Snapshot.Discover)}
}

func (e *Engine) ping(_ context.Context, r *Request) Reply {
	return r.empty()
}

func (e *Engine) listTools(ctx context.Context, r *Request) Reply {
	return answerList(ctx, r, "tools", r.Snapshot.Page, func(t *registry.Tool) *registry.Entry { return &t.Entry })
}

func (e *Engine) listResources(ctx context.Context, r *Request) Reply {
	return answerList(ctx, r, "resources", r.Snapshot.PageResources, entryOfResource)
}

func (e *Engine) listTemplates(ctx context.Context, r *Request) Reply {
	return answerList(ctx, r, "resourceTemplates", r.Snapshot.PageTemplates, entryOfResource)
}

func (e *Engine) listPrompts(ctx context.Context, r *Request) Reply {
	return answerList(ctx, r, "prompts", r.Snapshot.PagePrompts, func(p *registry.Prompt) *registry.Entry { return &p.Entry })
}

func entryOfResource(r *registry.Resource) *registry.Entry { return &r.Entry }

// answerList answers the list method whose result has key, with what the
// caller may see.
func answerList[E registry.Listed](
	ctx context.Context, r *Request, key string, page func(string, func(E) bool) ([]E, string, error), entryOf func(E) *registry.Entry,
) Reply {
	cursor := ""
	if raw := r.Message.Params.Get("cursor"); raw != nil && string(raw) != "null" {
		text, ok := wire.Text(raw)
		if !ok || text == "" {
			return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "the cursor is not valid"})
		}
		cursor = text
	}
	visible := choice(ctx, r, func(e E) access.Entry { return entryOf(e).AccessEntry() })
	entries, next, err := page(cursor, visible)
	if err != nil {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: err.Error()})
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"`...)
	out = append(out, key...)
	out = append(out, `":[`...)
	for i, e := range entries {
		if i > 0 {
			out = append(out, ',')
		}
		if entry := entryOf(e); r.Era == Modern {
			out = append(out, entry.Modern...)
		} else {
			out = append(out, entry.Legacy...)
		}
	}
	out = append(out, ']')
	if next != "" {
		out = wire.AppendField(out, "nextCursor", wire.AppendString(nil, next))
	}
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
		out = r.Snapshot.AppendCaching(out)
		out = appendServerInfo(out, r)
	}
	return Reply{Body: append(out, "}}"...)}
}
