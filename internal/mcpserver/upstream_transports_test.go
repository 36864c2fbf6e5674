// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestUpstreamTransports stands in front of a server over each transport that
// one can be reached by, in each era.
func TestUpstreamTransports(t *testing.T) {
	for _, tt := range []struct {
		scheme, path string
		protocol     serverconfig.Protocol
		version      string
	}{
		{"http", "/mcp", serverconfig.ProtocolAuto, "2026-07-28"},
		{"http", "/mcp", serverconfig.ProtocolLegacy, "2025-11-25"},
		{"http", "/sse", serverconfig.ProtocolAuto, "2025-11-25"},
		{"ws", "/ws", serverconfig.ProtocolAuto, "2026-07-28"},
		{"ws", "/ws", serverconfig.ProtocolLegacy, "2025-11-25"},
	} {
		t.Run(tt.scheme+tt.path+" "+tt.version, func(t *testing.T) {
			backend := newBlockingBackend(t)
			c := every(tool("ping", nil), slowTool(backend.URL), tool("big", func(t *serverconfig.Tool) {
				t.Expression = &serverconfig.Result{Text: "args.x + args.x"}
			}))
			behind := start(t, c)
			u := serverconfig.Upstream{Name: "u", Prefix: "u_", Protocol: tt.protocol, Connection: serverconfig.Connection{URL: tt.scheme + "://" + behind.server.Addr().String() + tt.path}}
			front := fronting(u)
			front.Limits.MaxMessageBytes = 20000
			f := start(t, front, hurried)
			f.lists("own", "u_big", "u_ping", "u_slow")
			if got := f.upstreams(); got != "u Ready 3 "+tt.version {
				t.Errorf("report %s", got)
			}
			if got := f.do(f.callModern("u_ping", "{}")).text(); got != "ping" {
				t.Errorf("got %q", got)
			}
			with := every(tool("fresh", nil))
			with.Tools = append(with.Tools, c.Tools...)
			behind.reload(with)
			f.lists("own", "u_big", "u_fresh", "u_ping", "u_slow")
			ctx, cancel := context.WithCancel(context.Background())
			f.async(f.callModern("u_slow", "{}").WithContext(ctx))
			<-backend.arrived
			cancel()
			<-backend.left

			if tt.path == "/sse" {
				return // An event that is too large ends the stream of all.
			}
			// What is too large fails its own call and nothing else.
			slow := f.async(f.callModern("u_slow", "{}"))
			<-backend.arrived
			if got := f.do(f.callModern("u_big", `{"x":"`+strings.Repeat("x", 15000)+`"}`)); got.reason() == "" {
				t.Errorf("too large: %s", got.body[:200])
			}
			close(backend.release)
			if got := (<-slow).text(); got != "released" {
				t.Errorf("beside it: %q", got)
			}
			must(t, behind.server.Stop(context.Background()))
			f.until("an upstream that is lost", func() bool {
				return strings.Contains(f.upstreams(), "Unavailable") || !strings.Contains(f.upstreams(), "Ready")
			})
		})
	}
}

// TestUpstreamWebSocketRefused: why an upgrade failed is told in the words that
// it is told in otherwise.
func TestUpstreamWebSocketRefused(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) { c.Transports = every().Transports }, tool("ping", nil))
	base := "ws://" + g.server.Addr().String()
	status := newPeer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	key, bad := "key-of-ci", "nonsense"
	header := func(value string) []serverconfig.Value {
		return []serverconfig.Value{{Name: "Authorization", Prefix: "Bearer ", Value: &value}}
	}
	f := start(t, fronting(
		serverconfig.Upstream{Name: "bad", Connection: serverconfig.Connection{URL: base + "/ws", Headers: header(bad)}},
		serverconfig.Upstream{Name: "good", Connection: serverconfig.Connection{URL: base + "/ws", Headers: header(key)}},
		serverconfig.Upstream{Name: "none", Connection: serverconfig.Connection{URL: base + "/ws"}},
		serverconfig.Upstream{Name: "odd", Connection: serverconfig.Connection{URL: "ws://" + status.address + "/ws"}},
		serverconfig.Upstream{Name: "path", Connection: serverconfig.Connection{URL: base + "/nowhere"}},
	), hurried)
	f.lists("own", "ping")
	f.until("all verdicts", func() bool { return !strings.Contains(f.upstreams(), "Pending") })
	want := "bad Unavailable 0 AuthRejected, good Ready 1 2026-07-28, none Unavailable 0 UpstreamAuthRequired, odd Unavailable 0 UnexpectedStatus, path Unavailable 0 UnexpectedStatus"
	if got := f.upstreams(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
