// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

func (e *Engine) discover(_ context.Context, r *Request) Reply {
	return Reply{Body: wire.AppendResult(r.Out, r.Message.ID, r.Snapshot.Discover)}
}

// initialize echoes a version spoken here, else offers the newest of its era:
// who opens with initialize does not know the others.
func (e *Engine) initialize(_ context.Context, r *Request) Reply {
	asked, ok := r.Message.Params.Text("protocolVersion")
	if !ok {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "protocolVersion must be a string"})
	}
	version := mcp.LegacyVersions[0]
	if mcp.IsLegacy(asked) {
		version = asked
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = r.Snapshot.AppendInitialize(out, version)
	return Reply{Body: append(out, '}')}
}

func (e *Engine) ping(_ context.Context, r *Request) Reply {
	return Reply{Body: wire.AppendResult(r.Out, r.Message.ID, []byte("{}"))}
}

func (e *Engine) listTools(ctx context.Context, r *Request) Reply {
	cursor := ""
	if raw := r.Message.Params.Get("cursor"); raw != nil && string(raw) != "null" {
		text, ok := wire.Text(raw)
		if !ok || text == "" {
			return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: "the cursor is not valid"})
		}
		cursor = text
	}
	page, next, err := r.Snapshot.Page(cursor, r.visibleTools(ctx))
	if err != nil {
		return r.fail(OK, &wire.Error{Code: mcp.CodeInvalidParams, Message: err.Error()})
	}
	out := wire.AppendResultHead(r.Out, r.Message.ID)
	out = append(out, `{"tools":[`...)
	for i, t := range page {
		if i > 0 {
			out = append(out, ',')
		}
		if r.Era == Modern {
			out = append(out, t.Modern...)
		} else {
			out = append(out, t.Legacy...)
		}
	}
	out = append(out, ']')
	if next != "" {
		out = wire.AppendField(out, "nextCursor", wire.AppendString(nil, next))
	}
	if r.Era == Modern {
		out = append(out, `,"resultType":"complete"`...)
		out = r.Snapshot.AppendCaching(out)
		out = append(out, `,"_meta":{"`+mcp.MetaServerInfo+`":`...)
		out = append(out, r.Snapshot.ServerInfo...)
		out = append(out, '}')
	}
	return Reply{Body: append(out, "}}"...)}
}
