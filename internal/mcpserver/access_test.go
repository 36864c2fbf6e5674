// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	ciOnly = "principal.subject == 'ci'"
	keyCI  = "key-of-ci"
)

// ruled is a catalog with entries of every kind and rules on them.
func ruled(change func(*serverconfig.Config), rules ...serverconfig.AccessRule) func(*serverconfig.Config) {
	return func(c *serverconfig.Config) {
		of := kinds(func(c *serverconfig.Config) {
			c.Templates = append(c.Templates, resource("y:{+path}", nil))
			c.Templates[0].Variables = []serverconfig.Variable{{Name: "v", Completions: []string{"one"}}}
			c.Prompts[0].Arguments = []serverconfig.Variable{{Name: "a", Completions: []string{"one"}}}
			c.Prompts = append(c.Prompts, prompt("embeds", func(p *serverconfig.Prompt) {
				p.Messages[0].Content = serverconfig.PromptContent{Type: serverconfig.ContentEmbeddedResource, URI: "x:a"}
			}))
		})
		c.Tools, c.Resources, c.Templates, c.Prompts = of.Tools, of.Resources, of.Templates, of.Prompts
		c.Access = &serverconfig.Access{Rules: rules}
		if change != nil {
			change(c)
		}
	}
}

// listedKeys are the values of key in the list that method gives.
func (g *guarded) listedKeys(token, method, list, key string) []string {
	g.t.Helper()
	entries, _ := g.do(as(g.modern(method, ""), token)).result()[list].([]any)
	var out []string
	for _, e := range entries {
		name, _ := e.(map[string]any)[key].(string)
		out = append(out, name)
	}
	return out
}

func (g *guarded) complete(ref, argument string) *http.Request {
	return g.modern("completion/complete", `"ref":{`+ref+`},"argument":{"name":"`+argument+`","value":""}`)
}

// TestAccessOfAllKinds: what a rule hides is in no list, and every way to it
// is answered as the way to what does not exist.
func TestAccessOfAllKinds(t *testing.T) {
	g := startGuarded(t, ruled(nil,
		serverconfig.AccessRule{Tools: []string{"t"}, When: ciOnly},
		serverconfig.AccessRule{Resources: []string{"x:a", "x:t/*"}, When: ciOnly},
		serverconfig.AccessRule{Prompts: []string{"p"}, When: ciOnly},
	))
	alice := g.token(nil)
	for _, test := range []struct{ method, list, key, hidden string }{
		{"tools/list", "tools", "name", "t"},
		{"resources/list", "resources", "uri", "x:a"},
		{"resources/templates/list", "resourceTemplates", "uriTemplate", "x:t/{v}"},
		{"prompts/list", "prompts", "name", "p"},
	} {
		all, seen := g.listedKeys(keyCI, test.method, test.list, test.key), g.listedKeys(alice, test.method, test.list, test.key)
		if !slices.Contains(all, test.hidden) || slices.Contains(seen, test.hidden) || len(seen) != len(all)-1 {
			t.Errorf("%s: %v of %v", test.method, seen, all)
		}
		if probe := g.listedKeys(g.probeToken(), test.method, test.list, test.key); !slices.Equal(probe, all) {
			t.Errorf("%s of the probe: %v of %v", test.method, probe, all)
		}
	}
	for name, request := range map[string]func(name string) *http.Request{
		"t":   func(name string) *http.Request { return g.callModern(name, "{}") },
		"x:a": g.read,
		// An entry that is not there is also one of which no template makes the URI.
		"x:t/1": g.read,
		"p":     func(name string) *http.Request { return g.prompt(name, "{}") },
		"p ": func(name string) *http.Request {
			return g.complete(`"type":"ref/prompt","name":"`+strings.TrimSpace(name)+`"`, "a")
		},
		"x:t/{v}": func(name string) *http.Request { return g.complete(`"type":"ref/resource","uri":"`+name+`"`, "v") },
	} {
		ask := func(name, token string) string {
			got := g.do(as(request(name), token))
			name = strings.TrimSpace(name)
			return fmt.Sprint(got.status, " ", strings.NewReplacer(`: `+name+`"`, "NAME", `"`+name+`"`, "NAME").Replace(got.body))
		}
		if got := ask(name, keyCI); strings.Contains(got, `"error"`) {
			t.Errorf("%q for whom it is: %s", name, got)
		}
		if hidden, unknown := ask(name, alice), ask("zzz", alice); hidden != unknown || !strings.Contains(hidden, "-32602") {
			t.Errorf("%q is hidden by\n%s\nand unknown by\n%s", name, hidden, unknown)
		}
	}
	// A prompt gives nobody what they may not read.
	if got := g.do(as(g.prompt("embeds", "{}"), alice)); strings.Contains(got.body, "text of") || got.errorCode() == 0 {
		t.Errorf("a prompt with a hidden resource: %s", got.body)
	}
	if got := g.do(as(g.prompt("embeds", "{}"), keyCI)); !strings.Contains(got.body, "text of x:a") {
		t.Errorf("a prompt with a visible resource: %s", got.body)
	}
}

// TestAccessOfTemplates: a rule on URIs holds for what a template makes,
// however the URI is written.
func TestAccessOfTemplates(t *testing.T) {
	g := startGuarded(t, ruled(nil, serverconfig.AccessRule{Resources: []string{"y:secret/*", "x:b"}, When: ciOnly}))
	alice := g.token(nil)
	if got := g.listedKeys(alice, "resources/templates/list", "resourceTemplates", "uriTemplate"); !slices.Contains(got, "y:{+path}") {
		t.Errorf("the template is not listed: %v", got)
	}
	for uri, want := range map[string]bool{
		"y:open/plan": true, "y:secret/plan": false, "y:%73ecret/plan": false, "y:secret%2Fplan": false, "x:t/secret": true, "x:b": false,
	} {
		got := g.do(as(g.read(uri), alice))
		if read := got.errorCode() == 0; read != want {
			t.Errorf("%s: %s", uri, got.body)
		}
		if got := g.do(as(g.read(uri), keyCI)); got.errorCode() != 0 {
			t.Errorf("%s for whom it is: %s", uri, got.body)
		}
	}
}

// TestAccessByDefault: without a rule that names it, an entry of any kind
// follows the default; a rule that names no kind is about the metadata of all.
func TestAccessByDefault(t *testing.T) {
	gold := map[string]string{"tier": "gold"}
	g := startGuarded(t, ruled(func(c *serverconfig.Config) {
		c.Access.DenyByDefault = true
		c.Resources[0].Metadata, c.Prompts[0].Metadata = gold, gold
	}, serverconfig.AccessRule{Resources: []string{"x:*"}, When: "true"}, serverconfig.AccessRule{Prompts: []string{"p"}, When: "true"},
		serverconfig.AccessRule{Resources: []string{"*"}, Prompts: []string{"*"}, When: "tool.metadata.tier != 'gold' || " + ciOnly}))
	alice := g.token(nil)
	for _, test := range []struct{ method, list, key, alice, ci string }{
		{"tools/list", "tools", "name", "", ""},
		{"resources/list", "resources", "uri", "x:b", "x:a x:b"},
		{"prompts/list", "prompts", "name", "embeds", "embeds p"},
	} {
		for token, want := range map[string]string{alice: test.alice, keyCI: test.ci} {
			if got := strings.Join(g.listedKeys(token, test.method, test.list, test.key), " "); got != want {
				t.Errorf("%s gives %q, want %q", test.method, got, want)
			}
		}
	}
}

// listenAs opens a stream as who shows token.
func (g *guarded) listenAs(token, filter string) <-chan map[string]any {
	g.t.Helper()
	plain := g.client
	defer func() { g.client = plain }()
	g.client = &http.Client{Transport: bearerTripper{plain.Transport, token}}
	return g.listen(`"s"`, filter).events
}

// TestAccessOfUpdates: nobody subscribes to what is hidden from them, and who
// did hears once that it is not what it was, and no more.
func TestAccessOfUpdates(t *testing.T) {
	texts := func(text string) func(*serverconfig.Config) {
		return func(c *serverconfig.Config) { c.Resources[0].Text, c.Resources[1].Text = &text, &text }
	}
	rule := func(uris ...string) serverconfig.AccessRule {
		return serverconfig.AccessRule{Resources: uris, When: ciOnly}
	}
	g := startGuarded(t, ruled(texts("one"), rule("x:a", "y:secret")))
	alice, ci := g.token(nil), keyCI
	const filter = `{"resourcesListChanged":true,"resourceSubscriptions":["x:a","x:b","y:secret","y:open"]}`
	streams := map[string]<-chan map[string]any{alice: g.listenAs(alice, filter), ci: g.listenAs(ci, filter)}
	for token, want := range map[string]string{alice: "[x:b y:open]", ci: "[x:a x:b y:secret y:open]"} {
		params, _ := next(t, streams[token])["params"].(map[string]any)
		if told, _ := params["notifications"].(map[string]any); fmt.Sprint(told["resourceSubscriptions"]) != want {
			t.Errorf("acknowledged %v, want %s", told, want)
		}
	}
	expect := func(token string, want ...string) {
		t.Helper()
		for _, w := range want {
			m := next(t, streams[token])
			got := fmt.Sprint(m["method"])
			if p, ok := m["params"].(map[string]any); ok && p["uri"] != nil {
				got += fmt.Sprint(" ", p["uri"])
			}
			if got != "notifications/resources/"+w {
				t.Errorf("got %s, want %s", got, w)
			}
		}
	}
	g.reload(g.config(ruled(texts("two"), rule("x:a", "y:secret"))))
	expect(alice, "updated x:b")
	expect(ci, "updated x:a", "updated x:b")
	// Hidden by a new rule: the list is another one for somebody, and what was
	// heard of is heard of for the last time.
	g.reload(g.config(ruled(texts("two"), rule("x:*", "y:secret"))))
	expect(alice, "list_changed", "updated x:b")
	expect(ci, "list_changed")
	g.reload(g.config(ruled(texts("three"), rule("x:*", "y:secret"))))
	expect(ci, "updated x:a", "updated x:b")
	g.reload(g.config(ruled(texts("four"), rule("x:a", "y:secret"))))
	expect(alice, "list_changed", "updated x:b")
}
