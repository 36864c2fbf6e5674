// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// stateless is a fake whose session is its connection.
func stateless() *fakemcp.Server {
	fake := fakemcp.New()
	fake.Settings.Stateless = true
	return fake
}

func overSSE(t *testing.T, fake *fakemcp.Server, began func(*fakemcp.Link)) *bench {
	t.Helper()
	b := newBenchOf(t, fake, fake.SSE(began))
	b.target.Transport, b.get = mcpprobe.TransportSSE, true
	return b
}

func overWebSocket(t *testing.T, fake *fakemcp.Server, began func(*fakemcp.Link)) *bench {
	t.Helper()
	b := newBenchOf(t, fake, fake.WebSocket(began))
	b.target.URL = strings.Replace(b.target.URL, "http:", "ws:", 1)
	b.target.Transport, b.get = mcpprobe.TransportWebSocket, true
	return b
}

func wantTransport(t *testing.T, r mcpprobe.Report, transport mcpprobe.Transport, era mcpprobe.Era) {
	t.Helper()
	if r.Transport != transport || r.Era != era {
		t.Errorf("got transport %q in the era %q, want %q in %q", r.Transport, r.Era, transport, era)
	}
}

func TestSSE(t *testing.T) {
	fake := stateless()
	// It asks something before it answers; some do.
	fake.On(mcp.MethodToolsList, func(c *fakemcp.Call) {
		c.Text(http.StatusOK, "application/json", `[{"jsonrpc":"2.0","id":"p","method":"ping"},`+c.Response(map[string]any{"tools": c.Settings.Tools})+`]`)
	})
	b := overSSE(t, fake, nil)
	b.target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer s3cr3t", Credential: true}}
	r := b.probe()
	wantResult(t, r, proved)
	wantTransport(t, r, mcpprobe.TransportSSE, mcpprobe.EraLegacy)
	var sent []string
	for _, request := range fake.Requests() {
		sent = append(sent, strings.TrimSpace(request.HTTP+" "+request.Method))
		if request.Header.Get("Authorization") != "Bearer s3cr3t" {
			t.Errorf("%s %s went without the credential", request.HTTP, request.Method)
		}
	}
	want := "GET,POST initialize,POST notifications/initialized,POST tools/list"
	if got := strings.Join(sent[:4], ","); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if fake.Count(http.MethodDelete) != 0 {
		t.Error("a session was deleted that has no id")
	}
}

func TestSSERefused(t *testing.T) {
	get := func(h fakemcp.Handler) *fakemcp.Server { return stateless().On(fakemcp.GET, h) }
	text := func(status int, contentType, body string) fakemcp.Handler {
		return func(c *fakemcp.Call) { c.Text(status, contentType, body) }
	}
	first := func(pieces ...string) func(*fakemcp.Link) {
		return func(l *fakemcp.Link) {
			for _, piece := range pieces {
				l.Send(piece)
			}
		}
	}
	tests := map[string]struct {
		fake  *fakemcp.Server
		began func(*fakemcp.Link)
		want  result
	}{
		"not found":       {get(text(404, "text/plain", foreign)), nil, failed(mcpprobe.UnexpectedStatus, mcpprobe.StepStream)},
		"no event stream": {get(text(200, "text/html", foreign)), nil, failed(mcpprobe.NotMCP, mcpprobe.StepStream).because(mcpprobe.FlawMediaType)},
		"wants a credential": {get(func(c *fakemcp.Call) {
			c.W.Header().Set("Www-Authenticate", "Bearer")
			c.Text(401, "", "")
		}), nil, failed(mcpprobe.AuthRequired, mcpprobe.StepStream)},
		"ends at once":        {get(func(c *fakemcp.Call) { c.Stream(": hello\n\n") }), nil, failed(mcpprobe.StreamEnded, mcpprobe.StepStream)},
		"breaks":              {get(func(c *fakemcp.Call) { c.Stream(": hello\n\n"); c.Drop() }), nil, failed(mcpprobe.ConnectionLost, mcpprobe.StepStream)},
		"another first event": {stateless(), first("data: " + foreign + "\n\n"), failed(mcpprobe.NotMCP, mcpprobe.StepStream).because(mcpprobe.FlawMissingFields)},
		"posts go elsewhere":  {stateless(), first("event: endpoint\ndata: http://" + foreign + ".example/\n\n"), failed(mcpprobe.Redirected, mcpprobe.StepStream)},
		"posts go to a port":  {stateless(), first("event: endpoint\ndata: //127.0.0.1:1/\n\n"), failed(mcpprobe.Redirected, mcpprobe.StepStream)},
		"posts are not found": {stateless(), first("event: endpoint\ndata: /nowhere\n\n"), failed(mcpprobe.UnexpectedStatus, mcpprobe.StepInitialize)},
		"post fails":          {stateless().On(mcp.MethodToolsList, text(500, "text/plain", foreign)), nil, failed(mcpprobe.ListFailed, mcpprobe.StepTools)},
		"wants it for a post": {stateless().On(mcp.MethodInitialize, text(401, "text/plain", foreign)), nil, failed(mcpprobe.AuthUnverified, mcpprobe.StepInitialize)},
		"initialize is refused": {stateless().On(mcp.MethodInitialize, func(c *fakemcp.Call) { c.Error(200, mcp.CodeInternalError, foreign, nil) }), nil,
			failed(mcpprobe.HandshakeRejected, mcpprobe.StepInitialize)},
		"another version": {stateless().On(mcp.MethodInitialize, func(c *fakemcp.Call) { c.Initialize("2099-01-01") }), nil,
			failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := overSSE(t, tt.fake, tt.began).probe()
			wantResult(t, r, tt.want)
			if r.Transport != "" && r.Tools.State == mcpprobe.ToolsUnknown && r.Step == mcpprobe.StepStream {
				t.Errorf("says that %s works", r.Transport)
			}
		})
	}
	for name, h := range map[string]fakemcp.Handler{
		"nothing comes":     func(c *fakemcp.Call) { c.Text(http.StatusOK, "", "") },
		"garbage comes":     func(c *fakemcp.Call) { c.Text(http.StatusOK, "", "}{ "+foreign) },
		"another's answer":  func(c *fakemcp.Call) { c.Text(http.StatusOK, "", `{"jsonrpc":"2.0","id":99,"result":{}}`) },
		"the post is stuck": (*fakemcp.Call).Hang,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := overSSE(t, stateless().On(mcp.MethodToolsList, h), nil)
			b.target.Timeout = 4 * quick
			wantResult(t, b.probe(), failed(mcpprobe.Timeout, mcpprobe.StepTools))
		})
	}
	t.Run("too large", func(t *testing.T) {
		b := overSSE(t, stateless().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			c.Text(http.StatusOK, "", `{"x":"`+strings.Repeat("x", 1<<16)+`"}`)
		}), nil)
		b.bounds.BodyBytes = 1 << 15
		wantResult(t, b.probe(), failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools))
	})
}

// TestTransportAuto: a server that knows HTTP with SSE alone is found, and
// asked in this way first from then on.
func TestTransportAuto(t *testing.T) {
	fake := stateless()
	b := newBenchOf(t, fake, fake.SSE(nil))
	b.target.Transport, b.get = mcpprobe.TransportAuto, true
	r := b.probe()
	wantResult(t, r, proved)
	wantTransport(t, r, mcpprobe.TransportSSE, mcpprobe.EraLegacy)
	before := len(fake.Requests())
	b.target.TransportHint, b.target.EraHint = r.Transport, r.Era
	wantResult(t, b.probe(), proved)
	if again := fake.Requests()[before]; again.HTTP != http.MethodGet {
		t.Errorf("began with %s", again.HTTP)
	}

	t.Run("streamable HTTP first", func(t *testing.T) {
		b := newBench(t, fakemcp.New())
		b.target.Transport = mcpprobe.TransportAuto // and no GET
		r := b.probe()
		wantResult(t, r, proved)
		wantTransport(t, r, mcpprobe.TransportStreamableHTTP, mcpprobe.EraLegacy)
		// It was of the older kind when seen last, and was upgraded.
		b.target.TransportHint, b.get = mcpprobe.TransportSSE, true
		r = b.probe()
		wantResult(t, r, proved)
		wantTransport(t, r, mcpprobe.TransportStreamableHTTP, mcpprobe.EraLegacy)
	})
	t.Run("neither", func(t *testing.T) {
		b := newBench(t, stateless().On(fakemcp.Any, func(c *fakemcp.Call) { c.Text(http.StatusNotFound, "text/plain", foreign) }))
		b.target.Transport, b.get = mcpprobe.TransportAuto, true
		wantResult(t, b.probe(), failed(mcpprobe.UnexpectedStatus, mcpprobe.StepInitialize))
	})
	t.Run("no GET where the answer is another", func(t *testing.T) {
		b := newBench(t, stateless().On(fakemcp.Any, func(c *fakemcp.Call) { c.Text(http.StatusBadGateway, "text/plain", foreign) }))
		b.target.Transport = mcpprobe.TransportAuto
		wantResult(t, b.probe(), failed(mcpprobe.UnexpectedStatus, mcpprobe.StepInitialize))
	})
}

func TestWebSocket(t *testing.T) {
	for name, settings := range map[mcpprobe.Era]func(*fakemcp.Settings){
		mcpprobe.EraLegacy: func(*fakemcp.Settings) {},
		mcpprobe.EraModern: func(s *fakemcp.Settings) { s.Modern, s.Legacy = true, false },
	} {
		t.Run(string(name), func(t *testing.T) {
			fake := stateless()
			settings(&fake.Settings)
			b := overWebSocket(t, fake, func(l *fakemcp.Link) { l.Send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`) })
			b.target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer s3cr3t", Credential: true}}
			r := b.probe()
			wantResult(t, r, proved)
			wantTransport(t, r, mcpprobe.TransportWebSocket, name)
			for _, request := range fake.Requests() {
				if request.Header.Get("Authorization") != "Bearer s3cr3t" {
					t.Error("the upgrade went without the credential")
				}
			}
		})
	}
	upgrade := func(h fakemcp.Handler) *fakemcp.Server { return stateless().On(fakemcp.GET, h) }
	for name, tt := range map[string]struct {
		fake *fakemcp.Server
		want result
	}{
		"not found":  {upgrade(func(c *fakemcp.Call) { c.Text(404, "text/plain", foreign) }), failed(mcpprobe.UnexpectedStatus, mcpprobe.StepUpgrade)},
		"forbidden":  {upgrade(func(c *fakemcp.Call) { c.Text(403, "text/plain", foreign) }), failed(mcpprobe.AuthUnverified, mcpprobe.StepUpgrade)},
		"no upgrade": {upgrade(func(c *fakemcp.Call) { c.Text(200, "text/html", foreign) }), failed(mcpprobe.UnexpectedStatus, mcpprobe.StepUpgrade)},
		"redirected": {upgrade(func(c *fakemcp.Call) {
			c.W.Header().Set("Location", "http://"+foreign+".example/")
			c.Text(302, "", "")
		}), failed(mcpprobe.Redirected, mcpprobe.StepUpgrade)},
		"another upgrade": {upgrade(func(c *fakemcp.Call) {
			c.W.Header().Set("Connection", "Upgrade")
			c.W.Header().Set("Upgrade", "other")
			c.Text(101, "", "")
		}), failed(mcpprobe.NotMCP, mcpprobe.StepUpgrade).because(mcpprobe.FlawNotHTTP)},
		"dropped":    {upgrade((*fakemcp.Call).Drop), failed(mcpprobe.ConnectionLost, mcpprobe.StepUpgrade)},
		"list fails": {stateless().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Error(200, mcp.CodeInternalError, foreign, nil) }), failed(mcpprobe.ListFailed, mcpprobe.StepTools)},
	} {
		t.Run(name, func(t *testing.T) { wantResult(t, overWebSocket(t, tt.fake, nil).probe(), tt.want) })
	}
	t.Run("silent", func(t *testing.T) {
		b := overWebSocket(t, stateless().On(mcp.MethodToolsList, (*fakemcp.Call).Hang), nil)
		b.target.Timeout = 4 * quick
		wantResult(t, b.probe(), failed(mcpprobe.Timeout, mcpprobe.StepTools))
	})
	t.Run("too large", func(t *testing.T) {
		b := overWebSocket(t, stateless().On(mcp.MethodToolsList, func(c *fakemcp.Call) {
			c.Text(http.StatusOK, "application/json", `{"x":"`+strings.Repeat("x", 1<<16)+`"}`)
		}), nil)
		b.bounds.BodyBytes = 1 << 15
		wantResult(t, b.probe(), failed(mcpprobe.ResponseTooLarge, mcpprobe.StepTools))
	})
	t.Run("ws and wss only there", func(t *testing.T) {
		b := overWebSocket(t, stateless(), nil)
		b.target.Transport = mcpprobe.TransportStreamableHTTP
		wantResult(t, b.probe(), failed(mcpprobe.InvalidTarget, mcpprobe.StepDial))
	})
}
