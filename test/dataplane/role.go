// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// roleArgument makes this program one of its own subjects.
const roleArgument = "role"

// play is a subject, until it is killed.
func play(role string, args []string) {
	var handler http.Handler
	switch role {
	case "floor":
		handler = http.HandlerFunc(echoJSON)
	case "sdk":
		handler = sdkHandler()
	case "backend":
		handler = http.HandlerFunc(backend)
	case "proxy":
		handler = proxyTo(args[1])
	case "child":
		child(os.Stdin, os.Stdout)
		return
	default:
		panic("no role " + role)
	}
	fmt.Fprintln(os.Stderr, http.ListenAndServe(args[0], handler))
	os.Exit(1)
}

// echoJSON decodes what it gets and encodes it again: less cannot be done with
// JSON over net/http.
func echoJSON(w http.ResponseWriter, r *http.Request) {
	var message map[string]any
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(message)
}

// sdkHandler is a minimal server of the Go SDK; its two eras want two handlers.
func sdkHandler() http.Handler {
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
	get := func(*http.Request) *mcp.Server { return server }
	modern := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	legacy := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= "2026-07-28" {
			modern.ServeHTTP(w, r)
			return
		}
		legacy.ServeHTTP(w, r)
	})
}

// backend is what a tool calls; it answers with what stands in its query.
func backend(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"text":"`+said+`"}`)
}

func proxyTo(target string) http.Handler {
	u, err := url.Parse(target)
	if err != nil {
		panic(err)
	}
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}
}

// child is an MCP server over stdin and stdout, as small as one can be.
func child(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				ProtocolVersion string `json:"protocolVersion"`
				Arguments       struct {
					Text json.RawMessage `json:"text"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		result := "{}"
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"` + m.Params.ProtocolVersion + `","capabilities":{"tools":{}},"serverInfo":{"name":"child","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + echoDefinition + `]}`
		case "tools/call":
			result = `{"content":[{"type":"text","text":` + string(m.Params.Arguments.Text) + `}]}`
		case "ping":
		default:
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`+"\n", m.ID)
			continue
		}
		_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+"}\n")
	}
}

// Of the one tool that all subjects have.
const (
	said           = "hello, world"
	echoDefinition = `{"name":"echo","description":"Says what it is told.","inputSchema":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}}`
)

// childCommand is how a bridge starts the child.
func childCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil || strings.ContainsAny(self, " '\"") {
		return nil, fmt.Errorf("the path of this program cannot be told to a shell: %q, %w", self, err)
	}
	return []string{self, roleArgument, "child"}, nil
}
