// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestServerPart: what the MCPServer itself brings into the config, with its
// defaults.
func TestServerPart(t *testing.T) {
	defaults := serverconfig.Config{
		Version:      serverconfig.Version,
		Server:       serverconfig.ServerInfo{Name: "s", Version: "0.0.0"},
		Transports:   []serverconfig.Transport{{Type: "StreamableHTTP", Path: "/mcp"}},
		CacheSeconds: 5,
		Limits:       serverconfig.Limits{Concurrency: 64, Streams: 1024, CallTimeoutSeconds: 60, MaxMessageBytes: 10485760},
		Probe:        trust,
	}
	tests := map[string]struct {
		spec string
		want func(*serverconfig.Config)
	}{
		"defaults": {`{}`, func(*serverconfig.Config) {}},
		"server info": {
			`serverInfo: {name: wire, title: T, version: 1.2.3, instructions: I}`,
			func(c *serverconfig.Config) {
				c.Server = serverconfig.ServerInfo{Name: "wire", Title: "T", Version: "1.2.3", Instructions: "I"}
			},
		},
		"a title alone keeps the name": {
			`serverInfo: {title: T}`,
			func(c *serverconfig.Config) { c.Server.Title = "T" },
		},
		"transport": {
			`transports: [{type: StreamableHTTP, path: /tools}]`,
			func(c *serverconfig.Config) { c.Transports[0].Path = "/tools" },
		},
		"all transports, in whatever order": {
			`transports: [{type: WebSocket}, {type: SSE}, {type: StreamableHTTP}]`,
			func(c *serverconfig.Config) {
				c.Transports = []serverconfig.Transport{{Type: "StreamableHTTP", Path: "/mcp"}, {Type: "SSE", Path: "/sse"}, {Type: "WebSocket", Path: "/ws"}}
				c.Requires = []string{"transports"}
			},
		},
		"another transport in place of the default": {
			`transports: [{type: WebSocket, path: /socket}]`,
			func(c *serverconfig.Config) {
				c.Transports = []serverconfig.Transport{{Type: "WebSocket", Path: "/socket"}}
				c.Requires = []string{"transports"}
			},
		},
		"origins": {
			`{publicURL: "https://mcp.example.com:8443/agents", cors: {allowedOrigins: ["https://b", "https://a", "https://mcp.example.com:8443"]}}`,
			func(c *serverconfig.Config) {
				c.AllowedOrigins = []string{"https://a", "https://b", "https://mcp.example.com:8443"}
			},
		},
		"no cache": {`cacheSeconds: 0`, func(c *serverconfig.Config) { c.CacheSeconds = 0 }},
		"rate": {
			`limits: {requestsPerSecond: 7}`,
			func(c *serverconfig.Config) { c.Limits.RequestsPerSecond, c.Limits.Burst = 7, 14 },
		},
		"sessions": {
			`sessions: {max: 7, idleSeconds: 60}`,
			func(c *serverconfig.Config) { c.Sessions = &serverconfig.Sessions{Max: 7, IdleSeconds: 60} },
		},
		"all limits": {
			`limits: {requestsPerSecond: 7, burst: 8, concurrency: 9, streams: 10, callTimeoutSeconds: 11, maxMessageBytes: 2048}`,
			func(c *serverconfig.Config) {
				c.Limits = serverconfig.Limits{RequestsPerSecond: 7, Burst: 8, Concurrency: 9, Streams: 10, CallTimeoutSeconds: 11, MaxMessageBytes: 2048}
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := defaults
			want.Transports = []serverconfig.Transport{defaults.Transports[0]}
			test.want(&want)
			if diff := cmp.Diff(&want, build(server(t, test.spec)).Config); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`: "StreamableHTTP /mcp",
		`transports: [{type: StreamableHTTP, path: /x}]`:                    "StreamableHTTP /x",
		`transports: [{type: WebSocket}, {type: SSE}]`:                      "SSE /sse",
		`transports: [{type: WebSocket}]`:                                   "WebSocket /ws",
		`transports: [{type: WebSocket}, {type: StreamableHTTP, path: /x}]`: "StreamableHTTP /x",
		`{type: Container, container: {image: i}}`:                          "StreamableHTTP /mcp",
		`{type: Container, container: {image: i, path: /v1/mcp/}}`:          "StreamableHTTP /v1/mcp/",
	} {
		transport, path := Endpoint(server(t, spec))
		if got := string(transport) + " " + path; got != want {
			t.Errorf("endpoint of %s is %s, want %s", spec, got, want)
		}
	}
}

func TestSelects(t *testing.T) {
	tests := map[string]struct {
		spec string
		want bool
	}{
		"by name":               {`serverRefs: [{name: other}, {name: s}]`, true},
		"another name":          {`serverRefs: [{name: other}]`, false},
		"by label":              {`serverSelector: {matchLabels: {team: x}}`, true},
		"another label":         {`serverSelector: {matchLabels: {team: "y"}}`, false},
		"by expression":         {`serverSelector: {matchExpressions: [{key: team, operator: In, values: [x, z]}]}`, true},
		"absent label":          {`serverSelector: {matchExpressions: [{key: other, operator: DoesNotExist}]}`, true},
		"empty selects nothing": {`serverSelector: {}`, false},
		"broken":                {`serverSelector: {matchExpressions: [{key: team, operator: Like}]}`, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := server(t, `{}`)
			s.Labels = map[string]string{"team": "x"}
			a := tool(t, "a", test.spec)
			if got := Selects(a, s); got != test.want {
				t.Errorf("selects: %v, want %v", got, test.want)
			}
			a.Namespace = "elsewhere"
			if Selects(a, s) {
				t.Error("a tool of another namespace was let in")
			}
		})
	}
}

func TestNotFronted(t *testing.T) {
	v := NotFronted(server(t, `{type: External, external: {url: "http://x/mcp"}}`))
	if v.Accepted || v.Reason != "ServerNotFronted" {
		t.Errorf("%+v", v)
	}
}
