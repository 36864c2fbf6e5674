// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Era says which revisions are spoken.
type Era string

// Eras.
const (
	Auto   Era = "Auto"
	Legacy Era = "Legacy"
	Modern Era = "Modern"
)

const (
	versionHeader = "Mcp-Protocol-Version"
	// modernVersion is the first stateless revision. Revisions are dates and
	// compare as text.
	modernVersion = "2026-07-28"

	sessionTimeout = 10 * time.Minute
	// badRequest is the code of refusals before the modern era.
	badRequest = -32000
)

// Server is one MCP server that both eras share.
type Server struct {
	era       Era
	server    *mcp.Server
	stateless http.Handler
	sessions  http.Handler
}

// New gives a server that speaks both eras on one URL (Auto), or one of them
// and refuses the other as a server does that knows no other.
func New(era Era) (*Server, error) {
	switch era {
	case Auto, Legacy, Modern:
	default:
		return nil, fmt.Errorf("the era is Auto, Legacy or Modern, not %q", era)
	}
	s := &Server{era: era, server: newServer()}
	get := func(*http.Request) *mcp.Server { return s.server }
	// The SDK's check of the Host header is for servers on loopback. Clients
	// come here by the name of a Service.
	s.stateless = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, DisableLocalhostProtection: true,
	})
	s.sessions = mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{
		SessionTimeout: sessionTimeout, EventStore: mcp.NewMemoryEventStore(nil), DisableLocalhostProtection: true,
	})
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	version := r.Header.Get(versionHeader)
	modern := version >= modernVersion
	switch {
	case modern && s.era == Legacy:
		refuse(w, badRequest, "Bad Request: Unsupported protocol version", nil)
	case !modern && s.era == Modern:
		refuse(w, mcp.CodeUnsupportedProtocolVersion, "unsupported protocol version", map[string]any{
			"supported": []string{modernVersion}, "requested": version,
		})
	case modern:
		s.stateless.ServeHTTP(w, r)
	default:
		s.sessions.ServeHTTP(w, r)
	}
}

// Close ends the sessions, and with them their streams.
func (s *Server) Close() {
	for session := range s.server.Sessions() {
		_ = session.Close()
	}
}

// refuse answers with a JSON-RPC error that belongs to no request.
func refuse(w http.ResponseWriter, code int, message string, data any) {
	failure := map[string]any{"code": code, "message": message}
	if data != nil {
		failure["data"] = data
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": nil, "error": failure})
}
