// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fakemcp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// Modes are named misbehaviours for a process that is told what to be.
var Modes = map[string]map[string]Handler{
	"ok":        {},
	"hang":      {Any: (*Call).Hang},
	"hang-list": {mcp.MethodToolsList: (*Call).Hang},
	"drop":      {Any: (*Call).Drop},
	"garbage":   {Any: func(c *Call) { c.Text(http.StatusOK, "application/json", "}{ \x00 garbage") }},
	"html": {Any: func(c *Call) {
		c.Text(http.StatusOK, "text/html", "<html><body>Please sign in</body></html>")
	}},
	"empty": {Any: func(c *Call) { c.Text(http.StatusOK, "application/json", "") }},
	"bad-gateway": {Any: func(c *Call) {
		c.Text(http.StatusBadGateway, "text/html", "<html><body>502 Bad Gateway</body></html>")
	}},
	"auth": {Any: func(c *Call) {
		c.W.Header().Set("Www-Authenticate", `Bearer resource_metadata="http://auth.example.test/.well-known/oauth-protected-resource"`)
		c.Text(http.StatusUnauthorized, "", "")
	}},
	"auth-basic": {Any: func(c *Call) {
		c.W.Header().Set("Www-Authenticate", `Basic realm="x"`)
		c.Text(http.StatusUnauthorized, "text/html", "<html></html>")
	}},
	"forbidden": {Any: func(c *Call) { c.Text(http.StatusForbidden, "text/plain", "no") }},
	"host":      {Any: func(c *Call) { c.Text(http.StatusMisdirectedRequest, "text/plain", "Invalid Host header") }},
	"slow": {Any: func(c *Call) {
		select {
		case <-time.After(2 * time.Second):
			c.Default()
		case <-c.R.Context().Done():
		}
	}},
	"version":      {mcp.MethodInitialize: func(c *Call) { c.Initialize("2099-01-01") }},
	"refuse":       {mcp.MethodInitialize: func(c *Call) { c.Error(http.StatusOK, mcp.CodeInternalError, "no", nil) }},
	"list-error":   {mcp.MethodToolsList: func(c *Call) { c.Error(http.StatusOK, mcp.CodeInternalError, "no", nil) }},
	"lose-session": {mcp.MethodToolsList: func(c *Call) { c.Text(http.StatusNotFound, "text/plain", "unknown session") }},
	"sse": {mcp.MethodToolsList: func(c *Call) {
		c.Stream(": hello\n\n", Data(c.Response(map[string]any{"tools": c.Settings.Tools})))
	}},
	"loop": {mcp.MethodToolsList: func(c *Call) {
		c.Result(map[string]any{"tools": c.Settings.Tools, "nextCursor": "same"})
	}},
	"huge": {mcp.MethodToolsList: func(c *Call) {
		c.W.Header().Set("Content-Type", "application/json")
		chunk := strings.Repeat("x", 1<<16)
		for c.Send(`{"jsonrpc":"2.0","id":1,"result":"`); c.R.Context().Err() == nil; {
			c.Send(chunk)
		}
	}},
}

// SetMode makes the server be one of Modes.
func (s *Server) SetMode(name string) error {
	handlers, ok := Modes[name]
	if !ok {
		return fmt.Errorf("unknown mode, one of %s", strings.Join(slices.Sorted(maps.Keys(Modes)), ", "))
	}
	s.Reset()
	for key, h := range handlers {
		s.On(key, h)
	}
	s.Release()
	return nil
}
