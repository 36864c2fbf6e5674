// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// TestConnectionsOfASession: one that leads astray, as to a pod that goes or
// past a Service that is being set up, ends with the session and does not fail
// the next one.
func TestConnectionsOfASession(t *testing.T) {
	type number struct{}
	var dialled atomic.Int64
	right := fakemcp.New()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := r.Context().Value(number{}).(int64); n == 1 {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		right.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, number{}, dialled.Add(1))
	}
	server.Start()
	t.Cleanup(server.Close)
	o := options(server.URL + "/mcp")
	if _, err := connect(t, o); ReasonOf(err) != UnexpectedStatus {
		t.Fatalf("got %v", err)
	}
	if dialled.Load() == 0 {
		t.Fatal("nothing was dialled")
	}
	if _, err := connect(t, o); err != nil {
		t.Errorf("the next session fails, too: %v after %d connections", err, dialled.Load())
	}
}
