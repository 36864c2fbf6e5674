// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// always answers every request alike.
func always(status int, contentType, body string, headers ...string) *fakemcp.Server {
	return fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
		for i := 0; i+1 < len(headers); i += 2 {
			c.W.Header().Set(headers[i], headers[i+1])
		}
		c.Text(status, contentType, body)
	})
}

// Case B07: something that is not MCP, and how it is told apart.
func TestCaseB07NotMCP(t *testing.T) {
	at := mcpprobe.StepInitialize
	notMCP := failed(mcpprobe.NotMCP, at)
	for name, tc := range map[string]struct {
		fake    *fakemcp.Server
		want    result
		message []string
	}{
		"a login page": {always(200, "text/html; charset=x", "<html>"+foreign), notMCP.because(mcpprobe.FlawMediaType), []string{"text/html", "HTTP 200"}},
		"b other JSON": {always(200, "application/json", `{"status":"ok"}`), notMCP.because(mcpprobe.FlawNotJSONRPC), []string{"no JSON-RPC"}},
		"c another id": {always(200, "application/json", `{"jsonrpc":"2.0","id":4711,"result":{"protocolVersion":"2025-06-18"}}`), notMCP.because(mcpprobe.FlawWrongID), []string{"another request"}},
		"c id as string": {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
			c.ID = []byte(`"` + string(c.ID) + `"`)
			c.Default()
		}), notMCP.because(mcpprobe.FlawWrongID), []string{"another request"}},
		"d empty result":     {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) { c.Result(struct{}{}) }), notMCP.because(mcpprobe.FlawMissingFields), []string{"required fields"}},
		"d null result":      {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) { c.Result(nil) }), notMCP.because(mcpprobe.FlawMissingFields), []string{"required fields"}},
		"e empty body":       {always(200, "application/json", ""), notMCP.because(mcpprobe.FlawEmpty), []string{"empty"}},
		"e no type, no body": {always(200, "", ""), notMCP.because(mcpprobe.FlawEmpty), []string{"empty"}},
		"e 204":              {always(204, "", ""), notMCP.because(mcpprobe.FlawEmpty), []string{"HTTP 204"}},
		"no type":            {always(200, "", "{}"), notMCP.because(mcpprobe.FlawMediaType), []string{"no content type"}},
		"foreign type":       {always(200, "FOREIGN//FOREIGN", "{}"), notMCP.because(mcpprobe.FlawMediaType), []string{"malformed"}},
		"half JSON":          {always(200, "application/json", `{"jsonrpc":`), notMCP.because(mcpprobe.FlawNotJSON), []string{"not JSON"}},
		"f basic auth": {always(401, "text/html", "<html>", "Www-Authenticate", `Basic realm="Bearer x"`),
			failed(mcpprobe.AuthUnverified, at), []string{"HTTP 401", "nothing shows"}},
		"403 page": {always(403, "text/html", "<html>"), failed(mcpprobe.AuthUnverified, at), []string{"HTTP 403"}},
		"401 with a JSON-RPC error": {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) { c.Error(401, -32001, foreign, nil) }),
			failed(mcpprobe.AuthRequired, at), []string{"wants a credential"}},
		"g bad gateway": {always(502, "text/html", "<html>"+foreign), failed(mcpprobe.UnexpectedStatus, at), []string{"HTTP 502", "proxy"}},
		"404":           {always(404, "text/plain", foreign), failed(mcpprobe.UnexpectedStatus, at), []string{"HTTP 404", "path"}},
		"405":           {always(405, "text/plain", foreign), failed(mcpprobe.UnexpectedStatus, at), []string{"HTTP 405", "path"}},
		"429":           {always(429, "text/plain", foreign), failed(mcpprobe.UnexpectedStatus, at), []string{"HTTP 429", "limits"}},
		"a result with status 500": {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
			c.Text(500, "application/json", c.Response(map[string]any{"protocolVersion": "2025-06-18"}))
		}), failed(mcpprobe.UnexpectedStatus, at), []string{"HTTP 500"}},
		"an error with status 200": {fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) { c.Error(200, -32603, foreign, nil) }),
			failed(mcpprobe.HandshakeRejected, at), []string{"-32603"}},
		"an error without id": {always(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"FOREIGN"}}`),
			failed(mcpprobe.HandshakeRejected, at), []string{"-32700", "HTTP 400"}},
		"dropped": {fakemcp.New().On(fakemcp.Any, (*fakemcp.Call).Drop), failed(mcpprobe.ConnectionLost, at), []string{"broke"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newBench(t, tc.fake).probe()
			wantResult(t, r, tc.want)
			wantMessage(t, r, tc.message...)
			if r.Era != mcpprobe.EraUnknown {
				t.Errorf("era %q of what is no server", r.Era)
			}
		})
	}
}

// Case B07 i: HTML for a while, then a server.
func TestCaseB07Starting(t *testing.T) {
	fake := fakemcp.New()
	b := newBench(t, fake)
	if err := fake.SetMode("html"); err != nil {
		t.Fatal(err)
	}
	wantResult(t, b.probe(), failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawMediaType))
	if err := fake.SetMode("ok"); err != nil {
		t.Fatal(err)
	}
	wantResult(t, b.probe(), proved)
}

// Any 2xx status and a batch are fine where the protocol allows them.
func TestFormsOfAnswers(t *testing.T) {
	for name, h := range map[string]fakemcp.Handler{
		"201": func(c *fakemcp.Call) { c.Text(201, "application/json", c.Response(alpha)) },
		"202": func(c *fakemcp.Call) { c.Text(202, "application/json", c.Response(alpha)) },
		"batch": func(c *fakemcp.Call) {
			c.Text(200, "application/json", `[{"jsonrpc":"2.0","method":"notifications/message"},`+c.Response(alpha)+`]`)
		},
		"spaces": func(c *fakemcp.Call) { c.Text(200, "application/json", " \r\n\t"+c.Response(alpha)+"\n") },
		"unknown members": func(c *fakemcp.Call) {
			c.Text(200, "application/json", strings.Replace(c.Response(alpha), "{", `{"x":{"result":{}},"Result":1,`, 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			wantResult(t, newBench(t, fakemcp.New().On(mcp.MethodToolsList, h)).probe(), proved)
		})
	}
}

// Case B09: Host-header checks.
func TestCaseB09HostRejected(t *testing.T) {
	checking := func(refuse fakemcp.Handler) *fakemcp.Server {
		return fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
			if host := c.R.Host; strings.HasPrefix(host, "localhost:") || strings.HasPrefix(host, "127.0.0.1:") {
				c.Default()
				return
			}
			refuse(c)
		})
	}
	for name, refuse := range map[string]fakemcp.Handler{
		"421": func(c *fakemcp.Call) { c.Text(421, "text/plain", "Invalid Host header") },
		"403": func(c *fakemcp.Call) { c.Error(403, -32000, "Invalid Host: search.team-a.svc", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, checking(refuse))
			b.target.DialAddress = b.http.Listener.Addr().String()
			b.target.URL = "http://search.team-a.svc.cluster.local:8080/mcp"
			r := b.probe()
			wantResult(t, r, failed(mcpprobe.HostRejected, mcpprobe.StepInitialize))
			wantMessage(t, r, "Host header", "probe.host")
			if got := b.fake.Requests()[0].Host; got != "search.team-a.svc.cluster.local:8080" {
				t.Errorf("Host %q", got)
			}
			b.target.Host = "localhost:8080"
			wantResult(t, b.probe(), proved)
		})
	}
}

// Case B11: the probe leaves no session behind.
func TestCaseB11Sessions(t *testing.T) {
	onDelete := func(status int) fakemcp.Handler {
		return func(c *fakemcp.Call) {
			if status == 200 || status == 204 {
				c.WellBehaved()
				return
			}
			c.Text(status, "", "")
		}
	}
	for name, tc := range map[string]struct {
		del   fakemcp.Handler
		list  fakemcp.Handler
		want  result
		freed bool
	}{
		"200": {onDelete(200), nil, proved, true}, "204": {onDelete(204), nil, proved, true},
		"404": {onDelete(404), nil, proved, false}, "405": {onDelete(405), nil, proved, false},
		"hang": {(*fakemcp.Call).Hang, nil, proved, false},
		"drop": {(*fakemcp.Call).Drop, nil, proved, false},
		"failing list": {onDelete(200), func(c *fakemcp.Call) { c.Error(200, -32603, "no", nil) },
			failed(mcpprobe.ListFailed, mcpprobe.StepTools), true},
		"hanging list": {onDelete(200), (*fakemcp.Call).Hang, failed(mcpprobe.Timeout, mcpprobe.StepTools), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New().On(fakemcp.DELETE, tc.del)
			if tc.list != nil {
				fake.On(mcp.MethodToolsList, tc.list)
			}
			b := newBench(t, fake)
			if name == "hanging list" {
				b.target.Timeout = 4 * quick
			}
			if name != "hang" {
				b.bounds.EndTime = ample
			}
			for range 2 {
				wantResult(t, b.probe(), tc.want)
			}
			want := 2
			if name == "drop" {
				want = 4 // Once more, over a connection that is there.
			}
			if n := fake.Count(http.MethodDelete); n != want {
				t.Errorf("%d DELETE in 2 probes", n)
			}
			if tc.freed && (fake.OpenSessions() != 0 || fake.MostSessions() != 1) {
				t.Errorf("%d sessions open, %d at once", fake.OpenSessions(), fake.MostSessions())
			}
			for _, request := range fake.Requests() {
				if request.HTTP == http.MethodDelete && (request.Header.Get(mcp.HeaderSessionID) == "" || request.Header.Get(mcp.HeaderProtocolVersion) != "2025-06-18") {
					t.Errorf("DELETE with %v", request.Header)
				}
			}
		})
	}
}

// Case B11: servers that make a session for a request that they then refuse.
func TestCaseB11RefusedRequests(t *testing.T) {
	refuse := func(status int) fakemcp.Handler {
		return func(c *fakemcp.Call) {
			c.Open()
			c.Error(status, -32600, foreign, nil)
		}
	}
	for name, tc := range map[string]struct {
		method string
		does   fakemcp.Handler
		want   result
	}{
		"discover, 400":       {mcp.MethodDiscover, refuse(400), proved},
		"discover, 404":       {mcp.MethodDiscover, refuse(404), proved},
		"discover, 500":       {mcp.MethodDiscover, refuse(500), proved},
		"discover, 200":       {mcp.MethodDiscover, refuse(200), proved},
		"initialize, 400":     {mcp.MethodInitialize, refuse(400), failed(mcpprobe.HandshakeRejected, mcpprobe.StepInitialize)},
		"initialize, no MCP":  {mcp.MethodInitialize, func(c *fakemcp.Call) { c.Open(); c.Text(200, "text/html", foreign) }, failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawMediaType)},
		"initialize, version": {mcp.MethodInitialize, func(c *fakemcp.Call) { c.Initialize("2099-01-01") }, failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepInitialize)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New().On(tc.method, tc.does)
			// It knows no modern version, and so refuses to end a session by one.
			fake.On(fakemcp.DELETE, func(c *fakemcp.Call) {
				if c.R.Header.Get(mcp.HeaderProtocolVersion) >= mcp.Version20260728 {
					c.Text(400, "text/plain", foreign)
					return
				}
				c.WellBehaved()
			})
			b := newBench(t, fake)
			b.bounds.EndTime = ample
			wantResult(t, b.probe(), tc.want)
			if fake.OpenSessions() != 0 || fake.MostSessions() == 0 {
				t.Errorf("%d sessions left open of %d", fake.OpenSessions(), fake.MostSessions())
			}
		})
	}
}

// Case B11: a hanging DELETE does not delay the result.
func TestCaseB11HangingDelete(t *testing.T) {
	fake := fakemcp.New().On(fakemcp.DELETE, (*fakemcp.Call).Hang)
	b := newBench(t, fake)
	b.bounds.EndTime = ample
	client := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Bounds: b.bounds})
	r := client.Probe(t.Context(), b.target)
	wantResult(t, r, proved)
	if r.Latency > ample/2 {
		t.Errorf("latency %s", r.Latency)
	}
	fake.On(fakemcp.DELETE, nil)
	fake.Release()
	client.Close()
}

// Case B11: the controller shuts down in mid-probe, before and after it knows
// of its session.
func TestCaseB11Shutdown(t *testing.T) {
	for name, method := range map[string]string{"at the list": mcp.MethodToolsList, "at initialize": mcp.MethodInitialize} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New()
			b := newBench(t, fake)
			b.bounds.EndTime = ample
			ctx, cancel := contextWithCancel(t)
			var once atomic.Bool
			fake.On(method, func(c *fakemcp.Call) {
				if once.CompareAndSwap(false, true) {
					cancel()
				}
				if method == mcp.MethodToolsList {
					c.Hang()
					return
				}
				c.WellBehaved()
			})
			r := b.probeWith(ctx)
			if r.Outcome != mcpprobe.Canceled {
				t.Errorf("outcome %s", r.Outcome)
			}
			if fake.OpenSessions() != 0 || fake.Count(http.MethodDelete) != 1 {
				t.Errorf("%d sessions open after %d DELETE", fake.OpenSessions(), fake.Count(http.MethodDelete))
			}
		})
	}
}

// A session that the server forgets between two requests (case C07).
func TestSessionLost(t *testing.T) {
	fake := fakemcp.New()
	if err := fake.SetMode("lose-session"); err != nil {
		t.Fatal(err)
	}
	r := newBench(t, fake).probe()
	wantResult(t, r, failed(mcpprobe.SessionLost, mcpprobe.StepTools))
	wantMessage(t, r, "replicas")
}
