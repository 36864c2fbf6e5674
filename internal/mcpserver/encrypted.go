// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// servingTLS is what the catalog in place says of TLS.
func (s *Server) servingTLS() *serverconfig.ServingTLS {
	if snapshot := s.registry.Snapshot(); snapshot != nil {
		return snapshot.Config.TLS
	}
	return nil
}

// encrypted routes what may be served on the port that clients call: a
// connection that was opened in clear before the catalog wanted TLS ends.
func (s *Server) encrypted(w http.ResponseWriter, r *http.Request) {
	if r.TLS == nil && s.serving.Wanted() {
		w.Header().Set("Connection", "close")
		httpgate.Refuse(w, http.StatusMisdirectedRequest, &wire.Error{
			Code: mcp.CodeForbidden, Message: "this server speaks TLS: use https", Data: wire.Data("TLSRequired"),
		})
		return
	}
	s.route(w, r)
}
