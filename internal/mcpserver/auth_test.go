// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth/authtest"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// guarded is a server that asks who calls: tokens of an issuer, API keys, and
// the operator's probe.
type guarded struct {
	*fixture
	issuer *authtest.Issuer
	signer *mcpprobe.TokenSigner
	public string
}

func startGuarded(t *testing.T, change func(*serverconfig.Config), tools ...serverconfig.Tool) *guarded {
	t.Helper()
	return startGuardedWith(t, nil, change, tools...)
}

func startGuardedWith(t *testing.T, middleware []call.Middleware, change func(*serverconfig.Config), tools ...serverconfig.Tool) *guarded {
	t.Helper()
	return startGuardedAs(t, func(o *mcpserver.Options) { o.Middleware = middleware }, change, tools...)
}

func startGuardedAs(t *testing.T, options func(*mcpserver.Options), change func(*serverconfig.Config), tools ...serverconfig.Tool) *guarded {
	t.Helper()
	g := &guarded{issuer: authtest.New(t, authtest.OpenIDPath)}
	private, public := key(t)
	signer, err := mcpprobe.NewTokenSigner(private, nil)
	must(t, err)
	g.signer, g.public = signer, public
	keys := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(keys, "clients"), 0o750))
	must(t, os.WriteFile(filepath.Join(keys, "clients", "ci"), []byte("key-of-ci\n"), 0o600))
	g.fixture = start(t, g.config(change, tools...), func(o *mcpserver.Options) { o.APIKeysDir = keys }, options)
	return g
}

func (g *guarded) config(change func(*serverconfig.Config), tools ...serverconfig.Tool) *serverconfig.Config {
	c := config(tools...)
	c.Requires = []string{serverconfig.FeatureAuth, serverconfig.FeatureAccess, serverconfig.FeatureLimitRules}
	c.Probe = serverconfig.ProbeTrust{Audience: "team-a/test", Keys: []string{g.public}}
	c.Auth = &serverconfig.Auth{
		Resource: "https://mcp.example.com/agents",
		JWT:      &serverconfig.JWT{Issuer: g.issuer.URL, Audiences: []string{"mcp"}},
		APIKeys:  &serverconfig.APIKeys{Secret: "clients"},
	}
	if change != nil {
		change(c)
	}
	return c
}

func (g *guarded) token(claims map[string]any) string { return g.issuer.Token("mcp", claims) }

func (g *guarded) probeToken() string {
	g.t.Helper()
	token, err := g.signer.Token("team-a/test")
	must(g.t, err)
	return token
}

func as(r *http.Request, token string) *http.Request {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

// names that a caller is listed, in order.
func (g *guarded) names(token string) []string {
	g.t.Helper()
	got := g.do(as(g.modern("tools/list", ""), token))
	if got.status != http.StatusOK {
		g.t.Fatalf("%d: %s", got.status, got.body)
	}
	return listed(got)
}

func listed(a answer) []string {
	tools, _ := a.result()["tools"].([]any)
	var names []string
	for _, t := range tools {
		name, _ := t.(map[string]any)["name"].(string)
		names = append(names, name)
	}
	return names
}

func dataReason(a answer) string {
	var m struct {
		Error struct {
			Data struct {
				Reason string `json:"reason"`
			} `json:"data"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.body), &m)
	return m.Error.Data.Reason
}

// TestWhoComesIn: every method of both eras wants a credential, before
// anything of the message is read.
func TestWhoComesIn(t *testing.T) {
	g := startGuarded(t, nil, tool("ping", nil))
	requests := map[string]func() *http.Request{
		"discover":       func() *http.Request { return g.modern("server/discover", "") },
		"list":           func() *http.Request { return g.modern("tools/list", "") },
		"call":           func() *http.Request { return g.callModern("ping", "{}") },
		"listen":         func() *http.Request { return g.modern("subscriptions/listen", `"notifications":{}`) },
		"no such method": func() *http.Request { return g.modern("nothing/at_all", "") },
		"initialize": func() *http.Request {
			return g.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
		},
		"legacy list":  func() *http.Request { return g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`) },
		"batch":        func() *http.Request { return g.post(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`) },
		"notification": func() *http.Request { return g.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`) },
		"no JSON":      func() *http.Request { return g.post(`{`) },
		"GET":          func() *http.Request { r := g.post(""); r.Method = http.MethodGet; return r },
	}
	for name, request := range requests {
		for token, reason := range map[string]string{"": "AuthRequired", "bad": "InvalidToken", g.issuer.Token("elsewhere", nil): "InvalidToken"} {
			got := g.do(as(request(), token))
			if got.status != http.StatusUnauthorized || dataReason(got) != reason || got.errorCode() != mcp.CodeUnauthorized {
				t.Errorf("%s with %.5q: %d, %s", name, token, got.status, got.body)
			}
			challenge := got.header.Get("WWW-Authenticate")
			if !strings.HasPrefix(challenge, "Bearer ") || !strings.Contains(challenge, `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/agents"`) {
				t.Errorf("%s: challenge %q", name, challenge)
			}
		}
	}
	for who, r := range map[string]*http.Request{
		"token": as(g.callModern("ping", "{}"), g.token(nil)),
		"key":   as(g.callModern("ping", "{}"), "key-of-ci"),
		"key header": func() *http.Request {
			r := g.callModern("ping", "{}")
			r.Header.Set("X-API-Key", "key-of-ci")
			return r
		}(),
		"batch": as(g.post(`[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]`), g.token(nil)),
	} {
		if got := g.do(r); got.status != http.StatusOK || !strings.Contains(got.body, "ping") {
			t.Errorf("%s: %d, %s", who, got.status, got.body)
		}
	}
}

// TestOriginFirst: the Origin rule stands before authentication, and a
// preflight needs no token.
func TestOriginFirst(t *testing.T) {
	g := startGuarded(t, nil, tool("ping", nil))
	with := func(method, path, origin, token string) answer {
		r, err := http.NewRequest(method, "http://"+g.server.Addr().String()+path, nil)
		must(t, err)
		r.Header.Set("Origin", origin)
		r.Header.Set("Access-Control-Request-Headers", "authorization, x-api-key")
		return g.do(as(r, token))
	}
	const metadata = "/.well-known/oauth-protected-resource"
	for _, path := range []string{"/mcp", metadata, metadata + "/agents"} {
		if got := with(http.MethodGet, path, "https://evil.example.com", g.token(nil)); got.status != http.StatusForbidden || dataReason(got) != "OriginNotAllowed" && path == "/mcp" {
			t.Errorf("GET %s of a foreign origin: %d, %s", path, got.status, got.body)
		}
		got := with(http.MethodOptions, path, "https://app.example.com", "")
		if got.status != http.StatusNoContent || !strings.Contains(got.header.Get("Access-Control-Allow-Headers"), "X-Api-Key") {
			t.Errorf("preflight of %s: %d, %v", path, got.status, got.header)
		}
	}
	got := with(http.MethodPost, "/mcp", "https://app.example.com", "")
	if got.status != http.StatusUnauthorized || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") || got.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("a page cannot read the challenge: %d, %v", got.status, got.header)
	}
	got = with(http.MethodGet, metadata+"/mcp", "https://app.example.com", "")
	var document map[string]any
	if err := json.Unmarshal([]byte(got.body), &document); err != nil || document["resource"] != "https://mcp.example.com/agents" || fmt.Sprint(document["authorization_servers"]) != "["+g.issuer.URL+"]" {
		t.Errorf("metadata: %d, %s", got.status, got.body)
	}
	if got.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
		t.Errorf("metadata without CORS: %v", got.header)
	}
	if got := with(http.MethodPost, metadata, "https://app.example.com", ""); got.status != http.StatusMethodNotAllowed {
		t.Errorf("POST of metadata: %d", got.status)
	}
	if got := with(http.MethodGet, metadata+"/elsewhere", "https://app.example.com", ""); got.status != http.StatusNotFound {
		t.Errorf("metadata of nothing: %d", got.status)
	}
}

// TestListsDiffer: each caller sees what access shows them, and what it does
// not show is the same as what does not exist.
func TestListsDiffer(t *testing.T) {
	hidden := func(t *serverconfig.Tool) {
		t.Definition = json.RawMessage(`{"name":"` + t.Name + `","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}`)
	}
	g := startGuarded(t, func(c *serverconfig.Config) {
		c.Access = &serverconfig.Access{Rules: []serverconfig.AccessRule{
			{Tools: []string{"billing_*"}, When: "'finance' in principal.claims.groups"},
			{When: "tool.metadata.tier != 'gold' || principal.kind == 'APIKey'"},
			{Tools: []string{"broken"}, When: "principal.claims.a.b.c == 1"},
		}}
	}, tool("billing_pay", hidden), tool("open", nil), tool("gold", func(t *serverconfig.Tool) { t.Metadata = map[string]string{"tier": "gold"} }), tool("broken", nil))
	finance := g.token(map[string]any{"groups": []string{"finance"}})
	alice := g.token(nil)
	for who, test := range map[string]struct {
		token string
		want  []string
	}{
		"finance": {finance, []string{"billing_pay", "open"}},
		"alice":   {alice, []string{"open"}},
		"a key":   {"key-of-ci", []string{"gold", "open"}},
		"probe":   {g.probeToken(), []string{"billing_pay", "broken", "gold", "open"}},
	} {
		if diff := cmp.Diff(test.want, g.names(test.token)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
		legacy := listed(g.do(as(g.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`), test.token)))
		if diff := cmp.Diff(test.want, legacy); diff != "" {
			t.Errorf("%s, legacy (-want +got):\n%s", who, diff)
		}
	}
	// Unknown and invisible: the same status, code, headers and words, also
	// where a rule on the headers of the hidden tool would be broken.
	call := func(name, token string) string {
		got := g.do(as(g.callModern(name, `{"r":"x"}`), token))
		return fmt.Sprint(got.status, " ", strings.ReplaceAll(got.body, name, "NAME"))
	}
	if unknown, invisible := call("nothing_here", alice), call("billing_pay", alice); unknown != invisible || !strings.Contains(unknown, "-32602") {
		t.Errorf("unknown and invisible differ:\n%s\n%s", unknown, invisible)
	}
	if got := call("broken", alice); got != call("nothing_here", alice) {
		t.Errorf("a rule that fails: %s", got)
	}
	if got := call("billing_pay", finance); !strings.Contains(got, "does not match the argument") {
		t.Errorf("the visible tool's header: %s", got)
	}
	if got := g.do(as(g.modern("tools/list", ""), alice)).result(); got["cacheScope"] != "private" {
		t.Errorf("cacheScope is %v", got["cacheScope"])
	}
	if n := g.logged("Access rule cannot be evaluated"); n != 1 {
		t.Errorf("the failing rule was logged %d times as a warning", n)
	}
}

// logged counts warnings that hold words.
func (f *fixture) logged(words string) int {
	n := 0
	for {
		select {
		case line := <-f.log.lines:
			if strings.Contains(string(line), words) && strings.Contains(string(line), `"level":"WARN"`) {
				n++
			}
		default:
			return n
		}
	}
}

// TestProbeMayList: the operator's token reads what there is and starts
// nothing.
func TestProbeMayList(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) { c.Access = &serverconfig.Access{DenyByDefault: true} }, tool("ping", nil))
	for _, r := range []*http.Request{g.modern("server/discover", ""), g.modern("tools/list", ""), g.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)} {
		if got := g.do(as(r, g.probeToken())); got.status != http.StatusOK || got.errorCode() != 0 {
			t.Errorf("%d: %s", got.status, got.body)
		}
	}
	for _, r := range []*http.Request{g.callModern("ping", "{}"), g.modern("subscriptions/listen", `"notifications":{}`)} {
		if got := g.do(as(r, g.probeToken())); got.status != http.StatusForbidden || dataReason(got) != "ProbeMayList" {
			t.Errorf("%d: %s", got.status, got.body)
		}
	}
	// The real probe, by its own token, proves the server and lists all of it.
	report := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"}).Probe(t.Context(), mcpprobe.Target{
		URL: g.url(), BearerToken: g.signer.Source("team-a/test"),
	})
	if report.Outcome != mcpprobe.Proved || len(report.Tools.Tools) != 1 {
		t.Errorf("probe: %s at %s, %d tools", report.Outcome, report.Step, len(report.Tools.Tools))
	}
	rejected := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"}).Probe(t.Context(), mcpprobe.Target{
		URL: g.url(), BearerToken: g.signer.Source("team-b/test"),
	})
	if rejected.Outcome != mcpprobe.AuthRejected {
		t.Errorf("a foreign probe: %s", rejected.Outcome)
	}
	none := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"}).Probe(t.Context(), mcpprobe.Target{URL: g.url()})
	if none.Outcome != mcpprobe.AuthRequired {
		t.Errorf("a probe without a token: %s", none.Outcome)
	}
}

// TestAccessWithoutAuth: rules hold for nobody too, and the probe still sees
// all.
func TestAccessWithoutAuth(t *testing.T) {
	g := startGuarded(t, func(c *serverconfig.Config) {
		c.Auth = nil
		c.Access = &serverconfig.Access{Rules: []serverconfig.AccessRule{{Tools: []string{"b"}, When: "principal.kind != 'Anonymous'"}}}
	}, tool("a", nil), tool("b", nil))
	for token, want := range map[string][]string{"": {"a"}, "whatever": {"a"}, g.probeToken(): {"a", "b"}} {
		if diff := cmp.Diff(want, g.names(token)); diff != "" {
			t.Errorf("%.5q (-want +got):\n%s", token, diff)
		}
	}
}

// TestPrincipal: expressions see who calls, and nothing but authentication can
// say who that is.
func TestPrincipal(t *testing.T) {
	g := startGuarded(t, nil, tool("who", func(t *serverconfig.Tool) {
		t.Expression = &serverconfig.Result{Text: "principal.kind + ' ' + principal.subject + ' ' + string(principal.claims.email == null ? '-' : principal.claims.email)"}
	}))
	for who, want := range map[string]string{
		g.token(map[string]any{"sub": "bob", "email": "bob@example.com"}): "JWT bob bob@example.com",
		"key-of-ci": "APIKey ci -",
	} {
		r := as(g.callModern("who", `{"principal":{"kind":"ServiceAccount","subject":"root"}}`), who)
		r.Header.Set("X-Forwarded-User", "root")
		if got := g.do(r).text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNothingIsForwarded: what a caller shows does not reach a backend.
func TestNothingIsForwarded(t *testing.T) {
	var seen http.Header
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		_, _ = w.Write([]byte("ok"))
	}))
	defer backend.Close()
	g := startGuarded(t, nil, tool("get", func(t *serverconfig.Tool) {
		t.Expression = nil
		t.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: backend.URL}, Method: "GET"}
	}))
	token := g.token(nil)
	r := as(g.callModern("get", "{}"), token)
	r.Header.Set("Cookie", "session=secret")
	if got := g.do(r); got.text() != "ok" {
		t.Fatal(got.body)
	}
	r = g.callModern("get", "{}")
	r.Header.Set("X-API-Key", "key-of-ci")
	if got := g.do(r); got.text() != "ok" {
		t.Fatal(got.body)
	}
	for name, values := range seen {
		if text := strings.Join(values, " "); strings.Contains(text, token) || strings.Contains(text, "secret") || strings.Contains(text, "key-of-ci") || name == "Authorization" || name == "Cookie" {
			t.Errorf("the backend saw %s: %s", name, text)
		}
	}
}
