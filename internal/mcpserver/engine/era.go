// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// EraOf finds the era of a message by itself, where there are no headers: a
// request is modern if its _meta says so or if only the modern era has its
// method. The error says what a modern request lacks.
func EraOf(m *wire.Message) (Era, *wire.Error) {
	raw := m.Meta.Get(mcp.MetaProtocolVersion)
	version, ok := wire.Text(raw)
	switch {
	case raw == nil && !ModernOnly(m.Method):
		return Legacy, nil
	case raw == nil:
		return Modern, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta lacks " + mcp.MetaProtocolVersion}
	case !ok:
		return Modern, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta: " + mcp.MetaProtocolVersion + " must be a string"}
	case !mcp.IsModern(version):
		return Modern, Unsupported(version)
	case m.ID != nil && !wire.IsObject(m.Meta.Get(mcp.MetaClientCapabilities)):
		return Modern, &wire.Error{Code: mcp.CodeInvalidParams, Message: "_meta lacks " + mcp.MetaClientCapabilities}
	}
	return Modern, nil
}

// ModernOnly reports whether only the modern era has a method.
func ModernOnly(method string) bool {
	return method == mcp.MethodDiscover || method == mcp.MethodSubscriptionsListen
}

// LegacyOnly refuses a modern request over a transport that the modern era
// does not have, and names the versions that it carries.
func LegacyOnly(m *wire.Message) *wire.Error {
	version, _ := wire.Text(m.Meta.Get(mcp.MetaProtocolVersion))
	return unsupported(mcp.LegacyVersions, version)
}

// maxRequested is how much of a version that was asked for is echoed, in bytes.
const maxRequested = 64

// Unsupported names the versions spoken here beside the one asked for.
func Unsupported(asked string) *wire.Error { return unsupported(mcp.AllVersions(), asked) }

func unsupported(supported []string, asked string) *wire.Error {
	raw, _ := json.Marshal(map[string]any{"supported": supported, "requested": asked[:min(len(asked), maxRequested)]})
	return &wire.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version", Data: raw}
}
