// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// The benchmarks count one call of an echo, client included: a raw client that
// sends prepared bytes, the same for all, so that differences are the
// servers'. Compare with BareHTTP, which decodes JSON and encodes it again.

type raw struct {
	body   []byte
	header http.Header
}

const echoArguments = `"name":"echo","arguments":{"text":"hello, world"}`

func modernEcho() raw {
	return raw{
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + echoArguments + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`),
		http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"echo"}},
	}
}

func legacyEcho() raw {
	return raw{
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + echoArguments + `}}`),
		http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2025-11-25"}},
	}
}

func benchmark(b *testing.B, endpoint string, message raw, want string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequest(http.MethodPost, endpoint, bytes.NewReader(message.body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = message.header
		response, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(want)) {
			b.Fatalf("got %d %s, %v", response.StatusCode, body, err)
		}
	}
}

// production logs what a pod logs: no line for a call that went well.
func production(o *mcpserver.Options) { o.Log = slog.New(slog.NewJSONHandler(io.Discard, nil)) }

func BenchmarkBareHTTP(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message map[string]any
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			b.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
	}))
	defer server.Close()
	benchmark(b, server.URL, modernEcho(), "hello, world")
}

func echoTool() serverconfig.Tool {
	return tool("echo", func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"echo","inputSchema":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}}`)
		t.Expression = &serverconfig.Result{Text: "args.text"}
	})
}

func BenchmarkExpressionModern(b *testing.B) {
	benchmark(b, start(b, config(echoTool()), production).url(), modernEcho(), "hello, world")
}

func BenchmarkExpressionLegacy(b *testing.B) {
	benchmark(b, start(b, config(echoTool()), production).url(), legacyEcho(), "hello, world")
}

// BenchmarkSessionLegacy is a call within a session.
func BenchmarkSessionLegacy(b *testing.B) {
	f := start(b, config(echoTool()), production)
	message := legacyEcho()
	message.header.Set("Mcp-Session-Id", f.connect("2025-11-25", "{}").id)
	benchmark(b, f.url(), message, "hello, world")
}

// BenchmarkSessionElsewhere is one that another replica has.
func BenchmarkSessionElsewhere(b *testing.B) {
	f := startFleet(b, config(echoTool()))
	message := legacyEcho()
	message.header.Set("Mcp-Session-Id", f.replicas[0].connect("2025-11-25", "{}").id)
	benchmark(b, f.replicas[1].url(), message, "hello, world")
}

func sdkServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var args struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.Text}}}, nil
	})
	return server
}

func BenchmarkSDKModern(b *testing.B) {
	sdk := sdkServer()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer server.Close()
	benchmark(b, server.URL, modernEcho(), "hello, world")
}

func BenchmarkSDKLegacy(b *testing.B) {
	sdk := sdkServer()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{Stateless: true}))
	defer server.Close()
	benchmark(b, server.URL, legacyEcho(), "hello, world")
}

func backend(b *testing.B) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"hello, world"}`)
	}))
	b.Cleanup(server.Close)
	return server
}

func BenchmarkHTTPTool(b *testing.B) {
	target := backend(b).URL
	f := start(b, config(tool("echo", func(t *serverconfig.Tool) {
		t.Definition = echoTool().Definition
		t.Expression = nil
		t.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: target + "/echo"}, Method: "GET", TimeoutSeconds: 30}
	})), production)
	benchmark(b, f.url(), modernEcho(), "hello, world")
}

func BenchmarkReverseProxy(b *testing.B) {
	target, err := url.Parse(backend(b).URL)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	})
	defer proxy.Close()
	benchmark(b, proxy.URL, modernEcho(), "hello, world")
}

func BenchmarkListOf100(b *testing.B) {
	c := config()
	for i := range 100 {
		c.Tools = append(c.Tools, tool("t"+string(rune('a'+i/26))+string(rune('a'+i%26)), nil))
	}
	message := modernEcho()
	message.body = bytes.Replace(bytes.Replace(message.body, []byte("tools/call"), []byte("tools/list"), 1), []byte(echoArguments+","), nil, 1)
	message.header = message.header.Clone()
	message.header.Set("Mcp-Method", "tools/list")
	message.header.Del("Mcp-Name")
	benchmark(b, start(b, c, production).url(), message, "Says tab.")
}
