// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import (
	"errors"
	"net/http"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/httpgate"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// parkedElsewhere passes a request that answers a question on to the replica in
// which the call waits. False: this one has to answer it, also where that
// replica is gone, and where the state is another server's own, which it looks
// like when Espalier stands behind Espalier. body is what was read of it.
func (t *Transport) parkedElsewhere(w http.ResponseWriter, r *http.Request, m *wire.Message, body []byte) bool {
	owner, _, parked := call.ParkedIn(m.Params.Get("requestState"))
	if !parked || !t.peers.Elsewhere(r.Context(), owner) {
		return false
	}
	fail := func(status int, message, reason string) {
		writeJSON(w, status, wire.AppendError(nil, m.ID, &wire.Error{Code: mcp.CodeUnavailable, Message: message, Data: wire.Data(reason)}))
	}
	err := t.peers.Forward(w, r, owner, body)
	switch {
	case errors.Is(err, peers.ErrGone):
		return false
	case errors.Is(err, peers.ErrUnknown):
		fail(http.StatusServiceUnavailable, "the other replicas cannot be looked up", "PeersUnknown")
	case err != nil && r.Context().Err() == nil:
		t.log.WarnContext(r.Context(), "Replica broke off", "requestId", httpgate.RequestID(r), "error", err.Error())
		fail(http.StatusBadGateway, "the replica in which the call waits broke off", "PeerBroken")
	}
	return true
}
