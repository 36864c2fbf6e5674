// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// Case A01: a stateless server without session ids and without a GET stream.
// Whatever GET would do, no GET is sent.
func TestCaseA01Stateless(t *testing.T) {
	for name, onGet := range map[string]fakemcp.Handler{
		"a 405":  nil,
		"b 404":  func(c *fakemcp.Call) { c.Text(404, "", "") },
		"c 406":  func(c *fakemcp.Call) { c.Error(406, -32000, "not acceptable", nil) },
		"d 400":  func(c *fakemcp.Call) { c.Text(400, "text/plain", "bad") },
		"e html": func(c *fakemcp.Call) { c.Text(200, "text/html", "<html>") },
		"f hang": (*fakemcp.Call).Hang,
		"g ping": func(c *fakemcp.Call) { c.Stream("event: ping\ndata:\n\n"); c.Hang() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := fakemcp.New().On(fakemcp.GET, onGet)
			fake.Settings.Stateless = true
			b := newBench(t, fake)
			for range 3 {
				wantResult(t, b.probe(), proved)
			}
			if n := fake.Count(mcp.MethodInitialize); n != 3 {
				t.Errorf("%d initialize in 3 probes", n)
			}
			if n := fake.Count(mcp.MethodDiscover); n != 3 {
				t.Errorf("%d server/discover in 3 probes", n)
			}
			if n := fake.Count(http.MethodDelete); n != 0 {
				t.Errorf("%d DELETE without a session", n)
			}
		})
	}
}

// Case A02: unknown, none declared, empty and counted are four things.
func TestCaseA02Counts(t *testing.T) {
	t.Run("1 stopped", func(t *testing.T) {
		fake := fakemcp.New()
		fake.SetTools(3)
		b := newBench(t, fake)
		if r := b.probe(); *r.Tools.Count() != 3 {
			t.Errorf("count %d, want 3", *r.Tools.Count())
		}
		b.http.Close()
		r := b.probe()
		wantResult(t, r, failed(mcpprobe.ConnectionRefused, mcpprobe.StepDial))
		if r.Tools.Count() != nil || r.ResourceCount != nil {
			t.Error("counts of a server that is gone")
		}
	})
	t.Run("2 hanging list", func(t *testing.T) {
		b := newBench(t, fakemcp.New().On(mcp.MethodToolsList, (*fakemcp.Call).Hang))
		b.target.Timeout = 4 * quick
		r := b.probe()
		wantResult(t, r, failed(mcpprobe.Timeout, mcpprobe.StepTools))
		wantMessage(t, r, "tools/list", "within the time")
	})
	t.Run("3 no tools declared", func(t *testing.T) {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Error(200, -32601, "no", nil) })
		fake.Settings.Capabilities = map[string]any{"resources": map[string]any{}}
		r := newBench(t, fake).probe()
		wantResult(t, r, result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "-"})
		if n := r.Tools.Count(); n == nil || *n != 0 {
			t.Error("count of tools that are not declared is 0")
		}
		if r.ResourceCount == nil || *r.ResourceCount != 0 || r.PromptCount == nil || *r.PromptCount != 0 {
			t.Error("resources are empty, prompts not declared: both 0")
		}
		wantMessage(t, r, "declares no tools")
	})
	t.Run("4 empty list", func(t *testing.T) {
		fake := fakemcp.New()
		fake.SetTools(0)
		r := newBench(t, fake).probe()
		wantResult(t, r, result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone})
		if n := r.Tools.Count(); n == nil || *n != 0 || r.Tools.State != mcpprobe.ToolsListed {
			t.Error("the list is known and empty")
		}
		wantMessage(t, r, "with 0 tools")
	})
	t.Run("no capabilities at all, and no tools", func(t *testing.T) {
		fake := fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Error(200, -32601, "no", nil) })
		fake.Settings.Capabilities = nil
		r := newBench(t, fake).probe()
		wantResult(t, r, result{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Tools: "-"})
	})
	t.Run("no capabilities at all, but tools", func(t *testing.T) {
		fake := fakemcp.New()
		fake.Settings.Capabilities = nil
		wantResult(t, newBench(t, fake).probe(), proved)
	})
}

// Case A05: nothing listens on the port; something that always says 401.
func TestCaseA05NothingAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, fakemcp.New())
	b.target.URL = "http://wrong-port.team-a.svc:8080/mcp"
	b.target.DialAddress = address
	r := b.probe()
	wantResult(t, r, failed(mcpprobe.ConnectionRefused, mcpprobe.StepDial))
	wantMessage(t, r, "refused", "port in the spec")
	if !r.Outcome.Connected(r.Step) {
		t.Error("a refusal shows that the network lets the probe through")
	}
}

// Case A06, as far as the probe goes: a credential that comes late. The same
// server is AuthRequired without and proved with it.
func TestCaseA06LateCredential(t *testing.T) {
	b := newBench(t, gated(401, nil))
	wantResult(t, b.probe(), failed(mcpprobe.AuthRequired, mcpprobe.StepInitialize))
	b.target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer probe-EXAMPLE", Credential: true}}
	wantResult(t, b.probe(), proved)
}

// gated wants "Bearer probe-EXAMPLE"; only, when not nil, says of which
// methods.
func gated(status int, only func(method string) bool) *fakemcp.Server {
	return fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
		if (only == nil || only(c.Method)) && c.R.Header.Get("Authorization") != "Bearer probe-EXAMPLE" {
			c.W.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="http://%s/.well-known/oauth-protected-resource"`, c.R.Host))
			c.Text(status, "text/plain", foreign)
			return
		}
		c.Default()
	})
}

// Case A07: a server that wants a credential.
func TestCaseA07Auth(t *testing.T) {
	right := []mcpprobe.Header{{Name: "Authorization", Value: "Bearer probe-EXAMPLE", Credential: true}}
	wrong := []mcpprobe.Header{{Name: "Authorization", Value: "Bearer wrong-EXAMPLE", Credential: true}}
	plain := []mcpprobe.Header{{Name: "X-Tenant", Value: "a"}}
	discoverOnly := func() *fakemcp.Server {
		return fakemcp.New().On(mcp.MethodDiscover, func(c *fakemcp.Call) { c.Text(401, "text/plain", foreign) })
	}
	listOnly := func(method string) bool { return method == mcp.MethodToolsList }
	for name, tc := range map[string]struct {
		fake    *fakemcp.Server
		headers []mcpprobe.Header
		want    result
	}{
		"a none given":               {gated(401, nil), nil, failed(mcpprobe.AuthRequired, mcpprobe.StepInitialize)},
		"a none that authenticates":  {gated(401, nil), plain, failed(mcpprobe.AuthRequired, mcpprobe.StepInitialize)},
		"b right":                    {gated(401, nil), right, proved},
		"c wrong":                    {gated(401, nil), wrong, failed(mcpprobe.AuthRejected, mcpprobe.StepInitialize)},
		"d discover only":            {discoverOnly(), right, proved},
		"d discover only, none":      {discoverOnly(), nil, proved},
		"e 403, none given":          {gated(403, nil), nil, failed(mcpprobe.AuthRequired, mcpprobe.StepInitialize)},
		"e 403, wrong":               {gated(403, nil), wrong, failed(mcpprobe.AuthRejected, mcpprobe.StepInitialize)},
		"list gated, none given":     {gated(401, listOnly), nil, failed(mcpprobe.AuthRequired, mcpprobe.StepTools)},
		"list gated, wrong":          {gated(401, listOnly), wrong, failed(mcpprobe.AuthRejected, mcpprobe.StepTools)},
		"bare 401 after a handshake": {bare401OnList(), nil, failed(mcpprobe.AuthRequired, mcpprobe.StepTools)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, tc.fake)
			b.target.Headers = tc.headers
			r := b.probe()
			wantResult(t, r, tc.want)
			if tc.want.Outcome != mcpprobe.Proved && r.Tools.Count() != nil {
				t.Error("a count is presented as fact")
			}
			for _, request := range tc.fake.Requests() {
				if strings.Contains(request.Path, "well-known") {
					t.Error("the metadata was fetched")
				}
			}
			if n := tc.fake.Count(mcp.MethodInitialize); n > 1 {
				t.Errorf("%d initialize", n)
			}
		})
	}
}

func bare401OnList() *fakemcp.Server {
	return fakemcp.New().On(mcp.MethodToolsList, func(c *fakemcp.Call) { c.Text(401, "text/html", "") })
}

// The probe's own token goes to servers of ours with auth, and counts as a
// credential.
func TestBearerToken(t *testing.T) {
	b := newBench(t, gated(401, nil))
	b.target.BearerToken = func() (string, error) { return "probe-EXAMPLE", nil }
	wantResult(t, b.probe(), proved)
	b.target.BearerToken = func() (string, error) { return "old-EXAMPLE", nil }
	wantResult(t, b.probe(), failed(mcpprobe.AuthRejected, mcpprobe.StepInitialize))
	b.target.BearerToken = func() (string, error) { return "", net.ErrClosed }
	wantResult(t, b.probe(), failed(mcpprobe.InvalidTarget, mcpprobe.StepDial))
}

// Case C13, as far as the probe goes: slow answers fit in a deadline that is
// configured, and a server that is starting is told apart from a broken one.
func TestCaseC13SlowStart(t *testing.T) {
	slow := func(c *fakemcp.Call) {
		select {
		case <-time.After(700 * time.Millisecond):
			c.WellBehaved()
		case <-c.R.Context().Done():
		}
	}
	t.Run("5 slow initialize", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, fakemcp.New().On(mcp.MethodInitialize, slow))
		wantResult(t, b.probe(), proved)
		b.target.Timeout = 300 * time.Millisecond
		r := b.probe()
		wantResult(t, r, failed(mcpprobe.Timeout, mcpprobe.StepInitialize))
		wantMessage(t, r, "probe.timeoutSeconds")
	})
	t.Run("5 slow everything", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, fakemcp.New().On(fakemcp.Any, slow))
		wantResult(t, b.probe(), proved)
	})
	t.Run("discover hangs, initialize answers", func(t *testing.T) {
		t.Parallel()
		fake := fakemcp.New().On(mcp.MethodDiscover, (*fakemcp.Call).Hang)
		b := newBench(t, fake)
		b.bounds.EraWait = 200 * time.Millisecond
		r := b.probe()
		wantResult(t, r, proved)
		if r.Era != mcpprobe.EraLegacy {
			t.Errorf("era %q", r.Era)
		}
		// Remembered: the next one does not wait again.
		b.target.EraHint = r.Era
		began := time.Now()
		wantResult(t, b.probe(), proved)
		if n := fake.Count(mcp.MethodDiscover); n != 1 || time.Since(began) > 10*time.Second {
			t.Errorf("%d server/discover in two probes", n)
		}
	})
	t.Run("a modern server is silent", func(t *testing.T) {
		t.Parallel()
		fake := fakemcp.New().On(mcp.MethodDiscover, (*fakemcp.Call).Hang)
		b := newBench(t, fake)
		b.bounds.EraWait = 50 * time.Millisecond
		b.target.EraHint = mcpprobe.EraModern
		b.target.Timeout = 500 * time.Millisecond
		wantResult(t, b.probe(), failed(mcpprobe.Timeout, mcpprobe.StepDiscover))
		if n := fake.Count(mcp.MethodInitialize); n != 0 {
			t.Errorf("%d initialize: each may leave a session behind", n)
		}
	})
}
