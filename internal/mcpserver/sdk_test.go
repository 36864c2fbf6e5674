// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestSDKClient lets an independent client speak to the server in either era.
func TestSDKClient(t *testing.T) {
	streamable := func(f *fixture) mcp.Transport {
		return &mcp.StreamableClientTransport{Endpoint: f.url(), HTTPClient: f.client, MaxRetries: -1}
	}
	sse := func(f *fixture) mcp.Transport {
		return &mcp.SSEClientTransport{Endpoint: "http://" + f.server.Addr().String() + "/sse", HTTPClient: f.client}
	}
	stdio := func(f *fixture) mcp.Transport {
		return &mcp.IOTransport{Reader: io.NopCloser(f.stdout), Writer: f.stdin}
	}
	for _, tt := range []struct {
		over, version string
		transport     func(*fixture) mcp.Transport
	}{
		{"StreamableHTTP", "2026-07-28", streamable},
		{"StreamableHTTP", "2025-11-25", streamable},
		{"StreamableHTTP", "2025-06-18", streamable},
		{"StreamableHTTP", "2025-03-26", streamable},
		{"SSE", "2025-11-25", sse},
		{"SSE", "2024-11-05", sse},
		{"stdio", "2026-07-28", stdio},
		{"stdio", "2025-11-25", stdio},
	} {
		version := tt.version
		t.Run(tt.over+" "+version, func(t *testing.T) {
			f := startAll(t, every(
				tool("ping", nil),
				tool("structured", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Structured: "{'a': args.x}"} }),
				tool("none", func(t *serverconfig.Tool) { t.Expression = nil }),
			))
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			changed := make(chan struct{}, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			session, err := client.Connect(ctx, tt.transport(f), &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := session.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "test" || got.Instructions != "Ask." {
				t.Errorf("initialized as %+v", got)
			}
			var names []string
			for tool, err := range session.Tools(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			if len(names) != 3 || names[1] != "ping" {
				t.Errorf("listed %v", names)
			}
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "structured", Arguments: map[string]any{"x": "é"}})
			if err != nil || result.IsError || result.StructuredContent.(map[string]any)["a"] != "é" {
				t.Errorf("got %+v, %v", result, err)
			}
			result, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "none"})
			if err != nil || !result.IsError || result.Content[0].(*mcp.TextContent).Text != "no executor configured" {
				t.Errorf("got %+v, %v", result, err)
			}
			if _, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "nope"}); err == nil {
				t.Error("an unknown tool gave no error")
			}
			f.reload(every(tool("ping", nil)))
			select {
			case <-changed:
			case <-ctx.Done():
				t.Error("the client was not told of the change")
			}
		})
	}
}
