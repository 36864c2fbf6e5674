// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

var quiet = log.New(io.Discard, "", 0)

func eras(modern, legacy bool) *fakemcp.Server {
	fake := fakemcp.New()
	fake.Settings.Modern, fake.Settings.Legacy = modern, legacy
	return fake
}

// Servers of one era, of both, and of none.
func TestEras(t *testing.T) {
	for name, tc := range map[string]struct {
		fake     *fakemcp.Server
		hint     mcpprobe.Era
		era      mcpprobe.Era
		version  string
		requests []string
	}{
		"modern": {eras(true, false), "", mcpprobe.EraModern, "2026-07-28", []string{"server/discover", "tools/list"}},
		"modern known": {eras(true, false), mcpprobe.EraModern, mcpprobe.EraModern, "2026-07-28",
			[]string{"server/discover", "tools/list"}},
		"both": {eras(true, true), "", mcpprobe.EraModern, "2026-07-28", []string{"server/discover", "tools/list"}},
		"legacy": {eras(false, true), "", mcpprobe.EraLegacy, "2025-06-18",
			[]string{"server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"}},
		"legacy known": {eras(false, true), mcpprobe.EraLegacy, mcpprobe.EraLegacy, "2025-06-18",
			[]string{"initialize", "notifications/initialized", "tools/list", "DELETE"}},
		"upgraded since": {eras(true, false), mcpprobe.EraLegacy, mcpprobe.EraModern, "2026-07-28",
			[]string{"initialize", "server/discover", "tools/list"}},
		"downgraded since": {eras(false, true), mcpprobe.EraModern, mcpprobe.EraLegacy, "2025-06-18",
			[]string{"server/discover", "initialize", "notifications/initialized", "tools/list", "DELETE"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.fake)
			b.target.EraHint = tc.hint
			r := b.probe()
			wantResult(t, r, proved)
			if r.Era != tc.era || r.ProtocolVersion != tc.version {
				t.Errorf("era %s, version %s", r.Era, r.ProtocolVersion)
			}
			if diff := cmp.Diff(mcpprobe.ServerInfo{Name: "fake", Version: "1"}, r.Server); diff != "" {
				t.Errorf("server (-want +got):\n%s", diff)
			}
			var got []string
			for _, request := range tc.fake.Requests() {
				if request.Method == "" {
					request.Method = request.HTTP
				}
				got = append(got, request.Method)
			}
			if diff := cmp.Diff(tc.requests, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// What a modern server says of its versions.
func TestDiscoverVersions(t *testing.T) {
	refuse := func(supported ...string) fakemcp.Handler {
		return func(c *fakemcp.Call) {
			c.Error(400, mcp.CodeUnsupportedProtocolVersion, foreign, map[string]any{"supported": supported})
		}
	}
	list := func(supported any) fakemcp.Handler {
		return func(c *fakemcp.Call) {
			c.Result(map[string]any{"supportedVersions": supported, "capabilities": map[string]any{"tools": map[string]any{}}})
		}
	}
	unsupported := failed(mcpprobe.UnsupportedProtocol, mcpprobe.StepDiscover)
	for name, tc := range map[string]struct {
		modern  fakemcp.Handler
		legacy  bool
		want    result
		offered []string
		version string
	}{
		"newer only":                     {modern: refuse("2030-01-01"), want: unsupported, offered: []string{"2030-01-01"}},
		"newer and a legacy one":         {modern: refuse("2030-01-01", "2025-03-26"), legacy: true, want: proved, version: "2025-03-26"},
		"names what it refuses":          {modern: refuse(mcp.ModernVersions[0]), want: unsupported, offered: mcp.ModernVersions[:1]},
		"refuses and names nothing":      {modern: refuse(), want: unsupported},
		"refuses, but initialize works":  {modern: refuse(), legacy: true, want: proved, version: "2025-06-18"},
		"header mismatch":                {modern: func(c *fakemcp.Call) { c.Error(400, mcp.CodeHeaderMismatch, foreign, nil) }, want: failed(mcpprobe.HandshakeRejected, mcpprobe.StepDiscover)},
		"lists newer only":               {modern: list([]string{"2030-01-01", foreign}), want: unsupported, offered: []string{"2030-01-01"}},
		"lists legacy":                   {modern: list([]string{"2025-06-18"}), legacy: true, want: proved, version: "2025-06-18"},
		"lists nonsense":                 {modern: list(foreign), legacy: true, want: proved, version: "2025-06-18"},
		"result of something else":       {modern: func(c *fakemcp.Call) { c.Result(map[string]any{"x": 1}) }, legacy: true, want: proved, version: "2025-06-18"},
		"500 on what it does not know":   {modern: func(c *fakemcp.Call) { c.Text(500, "text/plain", "") }, legacy: true, want: proved, version: "2025-06-18"},
		"drops what it does not know":    {modern: (*fakemcp.Call).Drop, legacy: true, want: proved, version: "2025-06-18"},
		"200 with -32601":                {modern: func(c *fakemcp.Call) { c.Error(200, -32601, foreign, nil) }, legacy: true, want: proved, version: "2025-06-18"},
		"a question instead of a result": {modern: func(c *fakemcp.Call) { c.Result(map[string]any{"resultType": "input_required"}) }, legacy: true, want: proved, version: "2025-06-18"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := eras(false, tc.legacy).On(mcp.MethodDiscover, tc.modern)
			fake.On(mcp.MethodInitialize, func(c *fakemcp.Call) {
				if !tc.legacy {
					c.Text(404, "text/plain", foreign)
					return
				}
				if strings.Contains(string(c.Params), "2025-03-26") {
					c.Initialize("2025-03-26")
					return
				}
				c.WellBehaved()
			})
			r := newBench(t, fake).probe()
			wantResult(t, r, tc.want)
			if r.ProtocolVersion != tc.version {
				t.Errorf("version %q, want %q", r.ProtocolVersion, tc.version)
			}
			if diff := cmp.Diff(tc.offered, r.Offered); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		})
	}
}

// A server that refuses a version and names it as supported is asked again.
func TestDiscoverRefusedOnce(t *testing.T) {
	var refused atomic.Bool
	fake := eras(true, false)
	fake.On(mcp.MethodDiscover, func(c *fakemcp.Call) {
		if refused.Swap(true) {
			c.WellBehaved()
			return
		}
		c.Error(400, mcp.CodeUnsupportedProtocolVersion, foreign, map[string]any{"supported": mcp.ModernVersions})
	})
	r := newBench(t, fake).probe()
	wantResult(t, r, proved)
	if r.Era != mcpprobe.EraModern {
		t.Errorf("era %q", r.Era)
	}
}

// The official SDK's server in each of its shapes.
func TestSDKServers(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1.8.0"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "alpha"}, func(_ context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{}, nil, nil
	})
	server.AddPrompt(&sdk.Prompt{Name: "p"}, nil)
	get := func(*http.Request) *sdk.Server { return server }
	for name, tc := range map[string]struct {
		options *sdk.StreamableHTTPOptions
		era     mcpprobe.Era
	}{
		"stateless":      {&sdk.StreamableHTTPOptions{Stateless: true}, mcpprobe.EraModern},
		"stateless JSON": {&sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}, mcpprobe.EraModern},
		"sessions":       {&sdk.StreamableHTTPOptions{}, mcpprobe.EraLegacy},
		"sessions JSON":  {&sdk.StreamableHTTPOptions{JSONResponse: true}, mcpprobe.EraLegacy},
	} {
		t.Run(name, func(t *testing.T) {
			handler := httptest.NewServer(sdk.NewStreamableHTTPHandler(get, tc.options))
			defer handler.Close()
			b := newBench(t, fakemcp.New())
			b.target.URL = handler.URL
			r := b.probe()
			wantResult(t, r, proved)
			if r.Era != tc.era || r.Server.Name != "sdk" || r.PromptCount == nil || *r.PromptCount != 1 {
				t.Errorf("era %s, server %v, prompts %v", r.Era, r.Server, r.PromptCount)
			}
			if open := countSessions(server); open != 0 {
				t.Errorf("%d sessions left at the server", open)
			}
			b.target.DialAddress = strings.TrimPrefix(handler.URL, "http://")
			b.target.URL = "http://search.team-a.svc/mcp"
			wantResult(t, b.probe(), failed(mcpprobe.HostRejected, mcpprobe.StepInitialize))
		})
	}
}

func countSessions(server *sdk.Server) (n int) {
	for end := time.Now().Add(settle); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		n = 0
		for range server.Sessions() {
			n++
		}
		if n == 0 {
			return 0
		}
	}
	return n
}

// Lists beside tools are counted; with tools a failure of theirs is a
// warning, without tools it is the outcome.
func TestOtherLists(t *testing.T) {
	fake := fakemcp.New()
	fake.Settings.Capabilities = map[string]any{"tools": map[string]any{"listChanged": true}, "resources": map[string]any{}, "prompts": map[string]any{}}
	fake.Settings.Prompts = raws(`{"name":"p"}`, `{"name":"p"}`, `{"name":"q"}`, `7`)
	fake.On(mcp.MethodResourcesList, func(c *fakemcp.Call) { c.Error(200, -32603, foreign, nil) })
	r := newBench(t, fake).probe()
	wantResult(t, r, proved)
	if r.ResourceCount != nil || r.PromptCount == nil || *r.PromptCount != 2 || !r.ListChanged {
		t.Errorf("resources %v, prompts %v, listChanged %v", r.ResourceCount, r.PromptCount, r.ListChanged)
	}
	if diff := cmp.Diff([]string{"resources/list"}, warned(r, mcpprobe.WarnListFailed)); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"prompts", "resources", "tools"}, r.Capabilities); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	fake.Settings.Capabilities = map[string]any{"resources": map[string]any{}}
	wantResult(t, newBench(t, fake).probe(), result{Outcome: mcpprobe.ListFailed, Step: mcpprobe.StepResources, Tools: "-"})
}

// What is refused before anything is dialled.
func TestInvalidTargets(t *testing.T) {
	for _, u := range []string{"", "x", "file:///etc/passwd", "ftp://h/", "http://", "http:///mcp", "http://user:pw@host/", "http://[::1", "//host/mcp"} {
		b := newBench(t, fakemcp.New())
		b.target.URL = u
		if r := b.probe(); r.Outcome != mcpprobe.InvalidTarget {
			t.Errorf("%q: %s", u, r.Outcome)
		}
	}
	for _, h := range []mcpprobe.Header{{Name: "X", Value: "a\r\nX-Admin: 1"}, {Name: "X Y", Value: "a"}, {Name: "", Value: "a"}, {Name: "Host", Value: "a"}, {Name: "X", Value: "\x00"}} {
		b := newBench(t, fakemcp.New())
		b.target.Headers = []mcpprobe.Header{h}
		if r := b.probe(); r.Outcome != mcpprobe.InvalidTarget {
			t.Errorf("%v: %s", h, r.Outcome)
		}
	}
	b := newBench(t, fakemcp.New())
	b.target.DialAddress = "localhost:80"
	if r := b.probe(); r.Outcome != mcpprobe.InvalidTarget {
		t.Errorf("dial address without IP: %s", r.Outcome)
	}
	b = newBench(t, fakemcp.New())
	b.target.URL = "http://no-such-host.invalid/mcp"
	if r := b.probe(); r.Outcome != mcpprobe.DNSFailed || r.Step != mcpprobe.StepDial {
		t.Errorf("host that does not resolve: %s at %s", r.Outcome, r.Step)
	}
}

func TestPolicy(t *testing.T) {
	policy := mcpprobe.Policy{Deny: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16"), netip.MustParsePrefix("fd99::/16")}}
	for addr, want := range map[string]bool{
		"10.0.0.7": true, "192.168.1.1": true, "203.0.113.9": true, "fd00::7": true, "2001:db8::1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false, "0.0.0.0": false, "::": false,
		"169.254.169.254": false, "169.254.1.1": false, "fe80::1%eth0": false, "::ffff:169.254.169.254": false,
		"fd00:ec2::254": false, "100.100.100.200": false, "168.63.129.16": false, "192.0.0.192": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "0.1.2.3": false,
		"64:ff9b::a9fe:a9fe": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "::127.0.0.1": false, "64:ff9b::cb00:7109": true,
		"10.9.1.1": false, "::ffff:10.9.1.1": false, "64:ff9b::a09:101": false, "fd99::1": false, "10.8.1.1": true,
	} {
		if got := policy.Allows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s allowed %v, want %v", addr, got, want)
		}
	}
	// Asked at the dial: a name that leads to loopback is refused, too.
	b := newBench(t, fakemcp.New())
	client := mcpprobe.New(mcpprobe.Options{})
	for _, u := range []string{b.target.URL, strings.Replace(b.target.URL, "127.0.0.1", "localhost", 1), "http://169.254.169.254/latest/"} {
		r := client.Probe(t.Context(), mcpprobe.Target{URL: u})
		if r.Outcome != mcpprobe.ProbeDenied || r.Step != mcpprobe.StepDial || r.Outcome.Connected(r.Step) {
			t.Errorf("%s: %s at %s", u, r.Outcome, r.Step)
		}
	}
	client.Close()
	if n := len(b.fake.Requests()); n != 0 {
		t.Errorf("%d requests got through", n)
	}
}

// Secrets reach the wire and nothing else, even when the peer sends them back.
func TestSecretsStayIn(t *testing.T) {
	const secret = "hunter2-EXAMPLE"
	fake := fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
		got := c.R.Header.Get("Authorization")
		c.W.Header().Set("X-Echo", got)
		c.Text(400, "text/"+strings.ReplaceAll(strings.ToLower(got), " ", ""), strings.Repeat("x", 190)+got+" "+got)
	})
	b := newBench(t, fake)
	b.target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer " + secret, Credential: true}}
	r := b.probe()
	if r.Diagnostics.PeerWords == "" || strings.Contains(strings.ToLower(dump(t, r)), "hunter") {
		t.Errorf("report %s", dump(t, r))
	}
	// Nor by way of names.
	fake.On(fakemcp.Any, func(c *fakemcp.Call) {
		c.Settings.Tools = raws(string(fakemcp.Tool("x-" + secret)))
		c.Settings.Capabilities = map[string]any{"tools": map[string]any{}, secret: map[string]any{}}
		c.Settings.Name = secret
		c.WellBehaved()
	})
	r = b.probe()
	if r.Outcome != mcpprobe.Proved || strings.Contains(dump(t, r), "hunter") {
		t.Errorf("report %s", dump(t, r))
	}
	if !strings.Contains(fake.Requests()[0].Header.Get("Authorization"), secret) {
		t.Error("the header did not reach the server")
	}
}

func dump(t *testing.T, v any) string {
	t.Helper()
	encoded, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func raws(entries ...string) (list []json.RawMessage) {
	for _, entry := range entries {
		list = append(list, json.RawMessage(entry))
	}
	return list
}

// Entries beside tools have digests too, told apart by URI, URI template and
// name. Templates are asked for of servers that name a catalog of ours only.
func TestOtherDigests(t *testing.T) {
	asked := 0
	fake := fakemcp.New()
	fake.Settings.Capabilities = map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "prompts": map[string]any{}}
	resource := `{"uri":"a:\u202eb","name":"x"}`
	fake.Settings.Resources = raws(resource, `{"uri":"a:c","name":"x"}`, `{"name":"no uri"}`, `{"uri":"a:c","name":"x"}`)
	fake.Settings.Prompts = raws(`{"name":"p"}`)
	fake.On(mcp.MethodResourceTemplates, func(c *fakemcp.Call) { asked++; c.Error(200, -32601, "", nil) })
	r := newBench(t, fake).probe()
	wantResult(t, r, proved)
	want, err := contract.OfEntry(json.RawMessage(resource), contract.KeyURI)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Resources.Entries) != 2 || r.Resources.Entries[0] != (mcpprobe.Entry{Name: `a:\u202eb`, Digest: want.Digest}) || *r.ResourceCount != 2 {
		t.Errorf("resources %+v, %d", r.Resources, *r.ResourceCount)
	}
	if len(r.Prompts.Entries) != 1 || r.Prompts.Entries[0].Digest == "" || !r.Prompts.Known {
		t.Errorf("prompts %+v", r.Prompts)
	}
	if asked != 0 || r.Templates.Known {
		t.Errorf("a stranger was asked for templates %d times: %+v", asked, r.Templates)
	}
	facts := r.Facts()
	r.Prompts.Entries[0].Digest = "v1:sha256:other"
	if r.Facts() == facts {
		t.Error("another definition is no other fact")
	}
}
