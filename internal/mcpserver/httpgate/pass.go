// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package httpgate

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// PassOn passes a request on to the replica that has its session. body is what
// was read of it; unknown is what to answer, with 404, when that replica is
// gone.
func PassOn(w http.ResponseWriter, r *http.Request, p *peers.Peers, owner string, body []byte, unknown *wire.Error, log *slog.Logger) {
	err := p.Forward(w, r, owner, body)
	switch {
	case errors.Is(err, peers.ErrGone):
		Refuse(w, http.StatusNotFound, unknown)
	case errors.Is(err, peers.ErrUnknown):
		Refuse(w, http.StatusServiceUnavailable, &wire.Error{Code: mcp.CodeUnavailable, Message: "the other replicas cannot be looked up", Data: wire.Data("PeersUnknown")})
	case err != nil && r.Context().Err() == nil:
		log.WarnContext(r.Context(), "Replica broke off", "requestId", RequestID(r), "error", err.Error())
		Refuse(w, http.StatusBadGateway, &wire.Error{Code: mcp.CodeUnavailable, Message: "the replica that has the session broke off", Data: wire.Data("PeerBroken")})
	}
}
