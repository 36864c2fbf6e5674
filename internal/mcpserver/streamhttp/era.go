// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/engine"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// prepare finds the era of a request and holds its headers against its body.
// A request is modern if its header or its _meta says so, or if its method is
// one that only the modern era has; initialize and all that names a legacy
// revision, or none, is legacy.
func prepare(r *http.Request, request *engine.Request) (int, *wire.Error) {
	m := request.Message
	header := r.Header.Get(mcp.HeaderProtocolVersion)
	rawMeta := m.Meta.Get(mcp.MetaProtocolVersion)
	meta, metaOK := wire.Text(rawMeta)
	if rawMeta != nil && !metaOK {
		return http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta: " + mcp.MetaProtocolVersion + " must be a string"}
	}
	switch {
	case header == "" && rawMeta == nil && !engine.ModernOnly(m.Method), mcp.IsLegacy(header) && rawMeta == nil:
		request.Era = engine.Legacy
		return 0, nil
	case m.IsResponse:
		return http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidRequest, Message: "a client sends no responses in this revision"}
	case header == "":
		return mismatch("the header MCP-Protocol-Version is missing")
	case rawMeta != nil && header != meta:
		return mismatch("the header MCP-Protocol-Version does not match _meta")
	case !mcp.IsModern(header):
		return http.StatusBadRequest, engine.Unsupported(header)
	}
	request.Era = engine.Modern
	if m.ID == nil {
		return 0, nil // Header rules are not defined for notifications.
	}
	if rawMeta == nil {
		return http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta lacks " + mcp.MetaProtocolVersion}
	}
	if !wire.IsObject(m.Meta.Get(mcp.MetaClientCapabilities)) {
		return http.StatusBadRequest, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta lacks " + mcp.MetaClientCapabilities}
	}
	return checkHeaders(r.Context(), r.Header, request)
}

func mismatch(text string) (int, *wire.Error) {
	return http.StatusBadRequest, &wire.Error{Code: mcp.CodeHeaderMismatch, Message: "Header mismatch: " + text}
}
