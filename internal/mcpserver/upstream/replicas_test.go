// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestReplicasDisagree: of two replicas behind one address one tells of a
// change that the other, which answers, does not have yet.
func TestReplicasDisagree(t *testing.T) {
	replica := func() (*sdk.Server, http.Handler) {
		server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{
			Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
		})
		return server, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
			&sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	}
	tells, tell := replica()
	answers, answer := replica()
	listening, listed := make(chan struct{}, 10), make(chan struct{}, 100)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Mcp-Method") {
		case mcp.MethodSubscriptionsListen:
			listening <- struct{}{}
			tell.ServeHTTP(w, r)
			return
		case mcp.MethodToolsList:
			defer func() { listed <- struct{}{} }()
		}
		answer.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	timing := hasty
	timing.Again = 10 * time.Millisecond
	m := managing(t, timing, serverconfig.Upstream{Name: "u", Protocol: serverconfig.ProtocolModern, Connection: serverconfig.Connection{URL: web.URL}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	next := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-ctx.Done():
			t.Fatalf("no %s", what)
		}
	}
	next("listen", listening)
	next("first list", listed)
	next("list after the stream stood", listed)
	add := func(s *sdk.Server) {
		s.AddTool(&sdk.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	}
	add(tells)
	next("list after the change was told", listed)
	add(answers)
	for {
		next("list later on", listed)
		if len(m.Listings()["u"].Tools) == 1 {
			return
		}
	}
}
