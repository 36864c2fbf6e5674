// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// tenant is an upstream that brings the same names as others, and answers with
// its own.
func tenant(t *testing.T, name, when string, tools ...string) (*fakemcp.Server, serverconfig.Upstream) {
	f, p := fakePeer(t, true, tools...)
	f.Settings.Capabilities = map[string]any{"tools": map[string]any{}, "prompts": map[string]any{}, "resources": map[string]any{"subscribe": true}, "completions": map[string]any{}}
	f.Settings.Resources = []json.RawMessage{json.RawMessage(`{"name":"r","uri":"r:1","description":"of ` + name + `"}`)}
	f.Settings.Prompts = []json.RawMessage{json.RawMessage(`{"name":"p","description":"of ` + name + `"}`)}
	content := map[string]any{"type": "text", "text": "by " + name}
	for method, result := range map[string]map[string]any{
		"tools/call":          {"content": []any{content}},
		"resources/read":      {"contents": []any{map[string]any{"uri": "r:1", "text": "by " + name}}},
		"prompts/get":         {"messages": []any{map[string]any{"role": "user", "content": content}}},
		"completion/complete": {"completion": map[string]any{"values": []any{"by " + name}}},
	} {
		f.On(method, func(c *fakemcp.Call) { c.Result(result) })
	}
	f.On(mcp.MethodSubscriptionsListen, (*fakemcp.Call).Hang)
	u := p.upstream(name, "")
	u.When = when
	return f, u
}

// tenants serves a config with upstreams to callers who are known.
func tenants(t *testing.T, policy serverconfig.ToolsPolicy, upstreams ...serverconfig.Upstream) *guarded {
	policy.Max = 100
	return startGuarded(t, func(c *serverconfig.Config) { c.Upstreams, c.Policy = upstreams, &policy }, tool("own", nil))
}

// TestUpstreamsOfTenants: two upstreams bring the same entries for different
// callers; each gets those of its own, on every path, and the other's nowhere.
func TestUpstreamsOfTenants(t *testing.T) {
	red, one := tenant(t, "red", "principal.claims.team == 'red'", "same", "only-red")
	_, two := tenant(t, "blue", "principal.claims.team == 'blue'", "same", "only-blue")
	g := tenants(t, serverconfig.ToolsPolicy{}, one, two)
	teams := map[string]string{"red": g.token(map[string]any{"team": "red"}), "blue": g.token(map[string]any{"team": "blue"})}
	for team, token := range teams {
		g.until("the tools of "+team, func() bool { return slices.Equal(g.names(token), []string{"only-" + team, "own", "same"}) })
		for name, request := range map[string]*http.Request{
			"call":     g.callModern("same", `{}`),
			"read":     g.read("r:1"),
			"prompt":   g.prompt("p", `{}`),
			"complete": g.complete(`"type":"ref/prompt","name":"p"`, "a"),
			"unlisted": g.read("r:2"),
		} {
			if got := g.do(as(request, token)); !strings.Contains(got.body, "by "+team) {
				t.Errorf("%s of %s: %s", name, team, got.body)
			}
		}
		for method, key := range map[string]string{"resources/list": "resources", "prompts/list": "prompts"} {
			if got := g.listedKeys(token, method, key, "description"); !slices.Equal(got, []string{"of " + team}) {
				t.Errorf("%s of %s: %v", method, team, got)
			}
		}
		if got := g.do(as(g.modern("tools/list", ""), token)); !strings.Contains(got.body, `"cacheScope":"private"`) {
			t.Errorf("a shared cache may keep %s", got.body)
		}
	}
	if got := g.do(as(g.callModern("only-red", `{}`), teams["blue"])); got.errorCode() != mcp.CodeInvalidParams {
		t.Errorf("another team's tool: %s", got.body)
	}
	// Of neither team.
	if got := g.names(keyCI); !slices.Equal(got, []string{"own"}) {
		t.Errorf("listed %v", got)
	}
	for name, request := range map[string]*http.Request{"call": g.callModern("same", `{}`), "read": g.read("r:1"), "prompt": g.prompt("p", `{}`)} {
		if got := g.do(as(request, keyCI)); got.errorCode() != mcp.CodeInvalidParams {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	// The probe looks at all there is, each name once.
	if got := g.names(g.probeToken()); !slices.Equal(got, []string{"only-blue", "only-red", "own", "same"}) {
		t.Errorf("the probe is listed %v", got)
	}
	// One upstream that goes leaves the other's entries of the same names.
	must(t, red.SetMode("drop"))
	if got := g.do(as(g.callModern("same", `{}`), teams["blue"])); got.text() != "by blue" {
		t.Errorf("blue is answered %s", got.body)
	}
	if n := len(g.server.Report().NotServed); n != 0 {
		t.Errorf("not served: %v", g.server.Report().NotServed)
	}
}

// TestUpstreamsThatOverlap: where several serve one caller the policy chooses.
func TestUpstreamsThatOverlap(t *testing.T) {
	const ci, anybody, never = "principal.kind == 'APIKey'", "true", "principal.claims.nothing.at.all == 1"
	for name, test := range map[string]struct {
		policy     string
		when       [3]string
		ci, others string // who answers
	}{
		"the first that fits":       {"Oldest", [3]string{ci, "", anybody}, "by a", "by b"},
		"the last that fits":        {"Newest", [3]string{"", anybody, ci}, "by c", "by b"},
		"behind one for all":        {"Newest", [3]string{ci, "", never}, "by b", "by b"},
		"what cannot be evaluated":  {"Oldest", [3]string{never, ci, ""}, "by b", "by c"},
		"what does not compile":     {"Oldest", [3]string{"principal.", "", ""}, "by b", "by b"},
		"hidden where two fit":      {"HideAll", [3]string{ci, "", never}, "", "by b"},
		"hidden, two for everybody": {"HideAll", [3]string{ci, "", ""}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var upstreams []serverconfig.Upstream
			for i, when := range test.when {
				letter := string(rune('a' + i))
				_, u := tenant(t, letter, when, "same", "only-"+letter)
				upstreams = append(upstreams, u)
			}
			g := tenants(t, serverconfig.ToolsPolicy{Conflicts: test.policy}, upstreams...)
			g.until("all upstreams", func() bool {
				all := g.names(g.probeToken())
				return slices.Contains(all, "only-a") && slices.Contains(all, "only-b") && slices.Contains(all, "only-c")
			})
			for token, want := range map[string]string{keyCI: test.ci, g.token(nil): test.others} {
				if listed := slices.Contains(g.names(token), "same"); listed != (want != "") {
					t.Errorf("listed: %t", listed)
				}
				if got := g.do(as(g.callModern("same", `{}`), token)); got.text() != want {
					t.Errorf("answered %s, want %q", got.body, want)
				}
			}
		})
	}
}

// TestUpstreamWhenChanges: an edit of who is served is a change of the list.
func TestUpstreamWhenChanges(t *testing.T) {
	_, u := tenant(t, "u", "principal.kind == 'APIKey'", "a")
	g := tenants(t, serverconfig.ToolsPolicy{}, u)
	g.until("the tool", func() bool { return slices.Equal(g.names(keyCI), []string{"a", "own"}) })
	r := as(g.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+modernMeta+`}}`), keyCI)
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", "subscriptions/listen")
	stream := g.open(r)
	next(t, stream.events)
	u.When = "principal.kind == 'JWT'"
	g.reload(g.config(func(c *serverconfig.Config) {
		c.Upstreams, c.Policy = []serverconfig.Upstream{u}, &serverconfig.ToolsPolicy{Max: 100}
	}, tool("own", nil)))
	if m := next(t, stream.events); m["method"] != mcp.NotificationToolsChanged {
		t.Errorf("got %v", m)
	}
	if got := g.names(keyCI); !slices.Equal(got, []string{"own"}) {
		t.Errorf("listed %v", got)
	}
	if got := g.names(g.token(nil)); !slices.Equal(got, []string{"a", "own"}) {
		t.Errorf("listed %v", got)
	}
}

// TestUpstreamAnswersDeclaredTool: a declared tool that an upstream answers has
// its own name and schema, goes where its upstream serves, and stands beside
// the upstream's own unless that has its name.
func TestUpstreamAnswersDeclaredTool(t *testing.T) {
	server, u := tenant(t, "u", "principal.kind == 'APIKey'", "raw", "plain")
	server.Settings.Tools = append(server.Settings.Tools, json.RawMessage(`{"name":"mirrors","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"Region"}}}}`))
	u.Exclude = []string{"mirrors"}
	curated := func(name, target string) serverconfig.Tool {
		return tool(name, func(t *serverconfig.Tool) {
			t.Expression, t.Upstream = nil, &serverconfig.UpstreamTool{Upstream: "u", Tool: target}
			t.Definition = json.RawMessage(`{"name":"` + name + `","description":"Curated.","inputSchema":{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}}`)
		})
	}
	nowhere := curated("nowhere", "raw")
	nowhere.Upstream.Upstream = "missing"
	g := startGuarded(t, func(c *serverconfig.Config) {
		c.Upstreams, c.Policy = []serverconfig.Upstream{u}, &serverconfig.ToolsPolicy{Max: 100}
	}, curated("nice", "raw"), curated("plain", "plain"), curated("regional", "mirrors"), nowhere)
	g.until("the tools", func() bool {
		return slices.Equal(g.names(keyCI), []string{"nice", "nowhere", "plain", "raw", "regional"})
	})
	if got := g.do(as(g.modern("tools/list", ""), keyCI)); strings.Count(got.body, "Curated.") != 4 {
		t.Errorf("listed %s", got.body)
	}
	for name, want := range map[string]string{"nice": "by u", "plain": "by u", "raw": "by u", "regional": "by u", "nowhere": "this server has no upstream missing that can be used"} {
		if got := g.do(as(g.callModern(name, `{"x":"eu"}`), keyCI)); got.text() != want {
			t.Errorf("%s answers %s", name, got.body)
		}
	}
	if got := g.do(as(g.callModern("nice", `{}`), keyCI)); got.reason() != "InvalidArguments" {
		t.Errorf("its own schema is not applied: %s", got.body)
	}
	calls := map[string]int{}
	for _, r := range server.Requests() {
		if r.Method == "tools/call" {
			calls[r.Header.Get("Mcp-Name")+" "+r.Header.Get("Mcp-Param-Region")]++
		}
	}
	if fmt.Sprint(calls) != "map[mirrors eu:1 plain :1 raw :2]" {
		t.Errorf("the upstream was asked %v", calls)
	}
	// Whom the upstream does not serve is not served by its tools either.
	if got := g.names(g.token(nil)); !slices.Equal(got, []string{"nowhere"}) {
		t.Errorf("listed %v", got)
	}
}
