// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/peers"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/ssehttp"
	"github.com/espalier-dev/espalier/internal/mcpserver/streamhttp"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/mcpserver/websocket"
)

// empty is a handler that has no catalog.
type empty struct{ transport.Handler }

// Snapshot implements transport.Handler.
func (empty) Snapshot() *registry.Snapshot { return nil }

// TestRetryAfter: whatever the transport, who comes before the catalog or
// during a drain is told when to come back.
func TestRetryAfter(t *testing.T) {
	log, m := slog.New(slog.DiscardHandler), metrics.New("test")
	for _, tt := range []transport.HTTP{
		streamhttp.New(m, peers.New(nil, log), log), ssehttp.New(m, peers.New(nil, log), log), websocket.New(m, log),
	} {
		t.Run(string(tt.Type()), func(t *testing.T) {
			refused := func(what string) {
				t.Helper()
				w := httptest.NewRecorder()
				tt.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
				var answer struct {
					Error struct {
						Code int
						Data struct{ Reason string }
					}
				}
				if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
					t.Fatal(err)
				}
				if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || answer.Error.Code != mcp.CodeUnavailable || answer.Error.Data.Reason != what {
					t.Errorf("%s: %d %v %s", what, w.Code, w.Header(), w.Body)
				}
			}
			must(t, tt.Start(empty{}))
			refused("NoCatalog")
			must(t, tt.Stop(context.Background()))
			refused("Draining")
		})
	}
}
