// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
	"github.com/espalier-dev/espalier/internal/sse"
)

// hosts are addresses of this machine at which a server on all of them is
// reached: loopback, and another if there is one.
func hosts(t *testing.T) []string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	must(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() {
			return []string{"127.0.0.1", ip.IP.String()}
		}
	}
	return []string{"127.0.0.1"}
}

// knock is a request as a browser makes it.
func knock(t *testing.T, method, url, origin string, headers ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	must(t, err)
	if origin != "" {
		r.Header.Set("Origin", origin)
		// Equal to Origin, as a rebound name makes it: no excuse.
		r.Host = strings.TrimPrefix(strings.TrimPrefix(origin, "http://"), "https://")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

var upgrade = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}

// TestOriginOfTransports: a foreign Origin is refused on every path, method
// and upgrade, at every address, before anybody is asked for a credential.
func TestOriginOfTransports(t *testing.T) {
	g := startGuardedWith(t, nil, func(c *serverconfig.Config) { c.Transports = every().Transports }, tool("ping", nil))
	_, port, err := net.SplitHostPort(g.server.Addr().String())
	must(t, err)
	open := start(t, every(tool("ping", nil)), func(o *mcpserver.Options) { o.Listen = "0.0.0.0:0" })
	_, openPort, err := net.SplitHostPort(open.server.Addr().String())
	must(t, err)
	bases := []string{"http://127.0.0.1:" + port}
	for _, host := range hosts(t) {
		bases = append(bases, "http://"+host+":"+openPort)
	}
	knocks := map[string]func(base, origin string) *http.Request{
		"POST /mcp": func(base, origin string) *http.Request {
			return knock(t, http.MethodPost, base+"/mcp", origin, "Content-Type", "application/json")
		},
		"GET /mcp":    func(base, origin string) *http.Request { return knock(t, http.MethodGet, base+"/mcp", origin) },
		"DELETE /mcp": func(base, origin string) *http.Request { return knock(t, http.MethodDelete, base+"/mcp", origin) },
		"GET /sse":    func(base, origin string) *http.Request { return knock(t, http.MethodGet, base+"/sse", origin) },
		"POST /sse": func(base, origin string) *http.Request {
			return knock(t, http.MethodPost, base+"/sse?sessionId=x", origin)
		},
		"GET /ws": func(base, origin string) *http.Request { return knock(t, http.MethodGet, base+"/ws", origin) },
		"upgrade to /ws": func(base, origin string) *http.Request {
			return knock(t, http.MethodGet, base+"/ws", origin, upgrade...)
		},
		"preflight of /mcp": func(base, origin string) *http.Request { return knock(t, http.MethodOptions, base+"/mcp", origin) },
		"preflight of /sse": func(base, origin string) *http.Request { return knock(t, http.MethodOptions, base+"/sse", origin) },
		"preflight of /ws":  func(base, origin string) *http.Request { return knock(t, http.MethodOptions, base+"/ws", origin) },
	}
	for name, request := range knocks {
		t.Run(name, func(t *testing.T) {
			for _, base := range bases {
				for _, origin := range []string{"https://evil.example.com", "http://app.example.com", "https://app.example.com:444", "null", base} {
					got := g.do(request(base, origin))
					if got.status != http.StatusForbidden || dataReason(got) != "OriginNotAllowed" || got.header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s from %s: %d, %v, %s", base, origin, got.status, got.header, got.body)
					}
				}
			}
			// One that is allowed gets CORS headers, whatever the answer is; a
			// preflight needs no credential.
			got := g.do(request(bases[0], "https://app.example.com"))
			want := http.StatusUnauthorized
			if strings.HasPrefix(name, "preflight") {
				want = http.StatusNoContent
			}
			if got.status != want || got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
				t.Errorf("an allowed Origin got %d, %v", got.status, got.header)
			}
		})
	}
}

// TestCredentialsOfTransports: the token is asked for at the upgrade, at the
// stream and at each message posted to it.
func TestCredentialsOfTransports(t *testing.T) {
	who := tool("who", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Text: "principal.subject"} })
	change := func(c *serverconfig.Config) {
		c.Transports, c.Requires = every().Transports, append(c.Requires, serverconfig.FeatureTransports)
	}
	g := startGuarded(t, change, who)
	base := "http://" + g.server.Addr().String()
	t.Run("WebSocket", func(t *testing.T) {
		if got := g.do(knock(t, http.MethodGet, base+"/ws", "", upgrade...)); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("without a token: %d, %v", got.status, got.header)
		}
		if got := g.do(as(knock(t, http.MethodGet, base+"/ws", "", upgrade...), "nonsense")); got.status != http.StatusUnauthorized {
			t.Errorf("with nonsense: %d", got.status)
		}
		p := connectWebSocketAs(t, g.fixture, true, g.token(map[string]any{"sub": "ann"}))
		if got := textOf(p.call("who", "{}").answer(t)); got != "ann" {
			t.Errorf("called as %q", got)
		}
	})
	t.Run("SSE", func(t *testing.T) {
		if got := g.do(knock(t, http.MethodGet, base+"/sse", "")); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") == "" {
			t.Errorf("without a token: %d, %v", got.status, got.header)
		}
		token := g.token(map[string]any{"sub": "ann"})
		p := connectSSEAs(t, g.fixture, false, token)
		p.initialize("2024-11-05")
		if got := textOf(p.call("who", "{}").answer(t)); got != "ann" {
			t.Errorf("called as %q", got)
		}
		for name, want := range map[string]struct {
			token  string
			status int
		}{"without a token": {"", http.StatusUnauthorized}, "as another": {g.token(map[string]any{"sub": "bob"}), http.StatusNotFound}, "as themselves": {token, http.StatusAccepted}} {
			r := as(knock(t, http.MethodPost, base+p.posts, ""), want.token)
			r.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
			if got := g.do(r); got.status != want.status {
				t.Errorf("%s: %d", name, got.status)
			}
		}
	})
	t.Run("a catalog that knows them no more", func(t *testing.T) {
		socket := connectWebSocketAs(t, g.fixture, true, "key-of-ci")
		stream := connectSSEAs(t, g.fixture, false, "key-of-ci")
		stream.initialize("2024-11-05")
		g.reload(g.config(func(c *serverconfig.Config) {
			change(c)
			c.Auth.APIKeys = nil
		}, who))
		for _, m := range []message{socket.ask("tools/list", "")} {
			if errorOf(m) != mcp.CodeUnauthorized {
				t.Errorf("got %v", m)
			}
		}
		r := as(knock(t, http.MethodPost, base+stream.posts, ""), "key-of-ci")
		r.Body = io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if got := g.do(r); got.status != http.StatusUnauthorized {
			t.Errorf("a post got %d", got.status)
		}
	})
}

// TestExpiryOfTransports: connections end with the credential that opened
// them.
func TestExpiryOfTransports(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) { c.Transports = every().Transports }, tool("ping", nil))
	soon := func() string { return g.token(map[string]any{"exp": time.Now().Add(4 * time.Second).Unix()}) }
	t.Run("WebSocket", func(t *testing.T) {
		socket, _, err := websocket.Dial(context.Background(), "ws://"+g.server.Addr().String()+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + soon()}}})
		must(t, err)
		defer socket.CloseNow() //nolint:errcheck // It is closed by then.
		_, _, err = socket.Read(context.Background())
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation || closed.Reason != "the credential has expired" {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("SSE", func(t *testing.T) {
		r := as(knock(t, http.MethodGet, "http://"+g.server.Addr().String()+"/sse", ""), soon())
		response, err := g.client.Do(r)
		must(t, err)
		defer response.Body.Close()
		events := sse.NewReader(response.Body)
		if first, err := events.Next(); err != nil || first.Kind != "endpoint" {
			t.Fatalf("%v, %v", first, err)
		}
		if m, err := events.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("got %v, %v", m, err)
		}
	})
}

// TestCredentialOverStdio: it stands in the environment.
func TestCredentialOverStdio(t *testing.T) {
	g := startGuarded(t, nil)
	for token, want := range map[string]int{"": mcp.CodeUnauthorized, "nonsense": mcp.CodeUnauthorized, g.token(nil): 0} {
		f := startAll(t, g.config(nil, tool("ping", nil)), func(o *mcpserver.Options) { o.Stdio.Token = token })
		p := connectStdio(t, f, true)
		if m := p.ask("tools/list", ""); errorOf(m) != want {
			t.Errorf("with %q: %v", token, m)
		}
		// In memory nobody is known.
		if m := connectMemory(t, f, true).ask("tools/list", ""); errorOf(m) != mcp.CodeUnauthorized {
			t.Errorf("in memory: %v", m)
		}
	}
}

// TestProbeOfTransports: the operator's probe proves a server over each of its
// transports, and over SSE without being told.
func TestProbeOfTransports(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) { c.Transports = every().Transports }, tool("ping", nil))
	probe := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}})
	defer probe.Close()
	for _, tt := range []struct {
		url             string
		transport, want mcpprobe.Transport
		era             mcpprobe.Era
	}{
		{"http://%s/mcp", mcpprobe.TransportStreamableHTTP, mcpprobe.TransportStreamableHTTP, mcpprobe.EraModern},
		{"http://%s/sse", mcpprobe.TransportSSE, mcpprobe.TransportSSE, mcpprobe.EraLegacy},
		{"http://%s/sse", mcpprobe.TransportAuto, mcpprobe.TransportSSE, mcpprobe.EraLegacy},
		{"ws://%s/ws", mcpprobe.TransportWebSocket, mcpprobe.TransportWebSocket, mcpprobe.EraModern},
	} {
		target := mcpprobe.Target{URL: fmt.Sprintf(tt.url, g.server.Addr()), Transport: tt.transport}
		target.BearerToken = func() (string, error) { return g.probeToken(), nil }
		r := probe.Probe(context.Background(), target)
		if r.Outcome != mcpprobe.Proved || r.Transport != tt.want || r.Era != tt.era || len(r.Tools.Tools) != 1 || r.CatalogDigest != g.server.Report().CatalogDigest {
			t.Errorf("%s as %q: %+v", tt.url, tt.transport, r)
		}
		target.BearerToken = nil
		if r := probe.Probe(context.Background(), target); r.Outcome != mcpprobe.AuthRequired {
			t.Errorf("%s without a credential: %s", tt.url, r.Outcome)
		}
	}
}
