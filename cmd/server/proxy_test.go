// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestEgressProxy: the variables of the environment say through which proxy
// the server calls what is outside of the cluster, and what within it goes
// past the proxy without being named.
func TestEgressProxy(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.Host)
		mu.Unlock()
		if r.Method == http.MethodConnect {
			http.Error(w, "no tunnels here", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("by the proxy")) // A client that is gone is no error of ours.
	}))
	defer proxy.Close()
	calls := func(name, url string) serverconfig.Tool {
		return serverconfig.Tool{
			Name: name, Source: "mcptool/" + name, Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object"}}`),
			HTTP: &serverconfig.HTTP{Connection: serverconfig.Connection{URL: url}, Method: http.MethodGet, TimeoutSeconds: 5},
		}
	}
	dir := mountedWith(t, calls("clear", "http://api.example.test/x"), calls("tunnel", "https://api.example.test/x"),
		calls("excepted", "http://direct.example.test/x"), calls("inside", "http://backend.shop.svc/x"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(self, "--transport", "stdio", "--catalog", dir, "--credentials", t.TempDir())
	command.Env = append(os.Environ(), asServer+"=1", "HTTP_PROXY="+proxy.URL, "HTTPS_PROXY="+proxy.URL, "NO_PROXY=direct.example.test")
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "desktop", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for name, want := range map[string]string{"clear": "by the proxy", "tunnel": "cannot be reached", "excepted": "cannot be reached", "inside": "cannot be reached"} {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(got, want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	seen := map[string]bool{}
	for _, request := range asked {
		seen[request] = true
	}
	if diff := cmp.Diff(map[string]bool{"GET api.example.test": true, "CONNECT api.example.test:443": true}, seen); diff != "" {
		t.Errorf("the proxy was asked for (-want +got):\n%s", diff)
	}
}
