// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// sdkPeer is an upstream of somebody else's making that has all kinds.
func sdkPeer(t *testing.T, modern bool) (*sdk.Server, *peer) {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "sdk", Version: "1"}, &sdk.ServerOptions{
		Capabilities: &sdk.ServerCapabilities{
			Tools: &sdk.ToolCapabilities{ListChanged: true}, Prompts: &sdk.PromptCapabilities{ListChanged: true},
			Resources: &sdk.ResourceCapabilities{ListChanged: true, Subscribe: true}, Completions: &sdk.CompletionCapabilities{},
		},
		CompletionHandler: func(_ context.Context, r *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			ref := r.Params.Ref
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{ref.Type + " " + ref.Name + ref.URI + " " + r.Params.Argument.Value}, Total: 1}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		if strings.HasSuffix(r.Params.URI, "/gone") {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "text/plain", Text: "sdk has " + r.Params.URI}}}, nil
	}
	server.AddResource(&sdk.Resource{Name: "one", URI: "u:one", Description: "One."}, read)
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "many", URITemplate: "u:many/{id}"}, read)
	server.AddPrompt(&sdk.Prompt{Name: "ask", Arguments: []*sdk.PromptArgument{{Name: "who", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: "Asks.", Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "ask " + r.Params.Arguments["who"]}}}}, nil
	})
	options := &sdk.StreamableHTTPOptions{}
	if modern {
		options = &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}
	}
	p := newPeer(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, options))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
	})
	return server, p
}

// list gives the identities and names of one list.
func (f *fixture) list(method, key, id string) []string {
	f.t.Helper()
	var out []string
	entries, _ := f.do(f.modern(method, "")).result()[key].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		out = append(out, fmt.Sprint(entry[id], " ", entry["name"]))
	}
	return out
}

func (f *fixture) resources() []string { return f.list("resources/list", "resources", "uri") }
func (f *fixture) templates() []string {
	return f.list("resources/templates/list", "resourceTemplates", "uriTemplate")
}
func (f *fixture) prompts() []string { return f.list("prompts/list", "prompts", "name") }

// TestUpstreamKinds: resources, templates and prompts of real servers of both
// eras are listed, read, got and completed, for callers of both eras.
func TestUpstreamKinds(t *testing.T) {
	for _, modern := range []bool{true, false} {
		t.Run(fmt.Sprintf("modern=%t", modern), func(t *testing.T) {
			server, p := sdkPeer(t, modern)
			c := kinds(nil)
			c.Upstreams, c.Policy = []serverconfig.Upstream{p.upstream("u", "p_")}, &serverconfig.ToolsPolicy{Max: 100}
			f := start(t, c, hurried)
			f.until("the resources", func() bool {
				return slices.Equal(f.resources(), []string{"u:one p_one", "x:a x", "x:b x"})
			})
			if got := f.templates(); !slices.Equal(got, []string{"u:many/{id} p_many", "x:t/{v} x"}) {
				t.Errorf("templates %q", got)
			}
			if got := f.prompts(); !slices.Equal(got, []string{"p p", "p_ask p_ask"}) {
				t.Errorf("prompts %q", got)
			}
			for name, test := range map[string]struct {
				request *http.Request
				want    string
			}{
				"description":        {f.modern("resources/templates/list", ""), `"description":"(from upstream u)"`},
				"own description":    {f.modern("resources/list", ""), `"description":"One."`},
				"prompt described":   {f.modern("prompts/list", ""), `"description":"(from upstream u)"`},
				"listed":             {f.read("u:one"), `"text":"sdk has u:one"`},
				"by template":        {f.read("u:many/7"), `"text":"sdk has u:many/7"`},
				"declared":           {f.read("x:t/7"), `"text":"text of x:t/{v}"`},
				"of nobody":          {f.read("z:nope"), `"code":-32602`},
				"gone":               {f.read("u:many/gone"), `"code":-32602`},
				"legacy":             {f.legacy("resources/read", `"uri":"u:many/7"`), `"text":"sdk has u:many/7"`},
				"gone, legacy":       {f.legacy("resources/read", `"uri":"u:many/gone"`), `"code":-32002`},
				"prompt":             {f.prompt("p_ask", `{"who":"me"}`), `"text":"ask me"`},
				"prompt's own words": {f.prompt("p_ask", `{"who":"me"}`), `"description":"Asks."`},
				"prompt, legacy":     {f.legacy("prompts/get", `"name":"p_ask","arguments":{"who":"me"}`), `"text":"ask me"`},
				"prompt, no prefix":  {f.prompt("ask", `{"who":"me"}`), `unknown prompt: ask`},
				"completion": {f.modern("completion/complete", `"ref":{"type":"ref/prompt","name":"p_ask"},"argument":{"name":"who","value":"x"}`),
					`"values":["ref/prompt ask x"]`},
				"completion of a template": {f.legacy("completion/complete", `"ref":{"type":"ref/resource","uri":"u:many/{id}"},"argument":{"name":"id","value":"y"}`),
					`"values":["ref/resource u:many/{id} y"]`},
				"capabilities": {f.modern("server/discover", ""), `"resources":{"listChanged":true,"subscribe":true},"prompts":{"listChanged":true},"completions":{}`},
			} {
				if got := f.do(test.request); !strings.Contains(got.body, test.want) {
					t.Errorf("%s: %s", name, got.body)
				}
			}
			if u := f.server.Report().Upstreams[0]; u.Tools != 0 || u.Resources != 2 || u.Prompts != 1 {
				t.Errorf("report %+v", u)
			}
			server.RemovePrompts("ask")
			server.AddResource(&sdk.Resource{Name: "two", URI: "u:two"}, nil)
			f.until("the changes", func() bool {
				return slices.Contains(f.resources(), "u:two p_two") && slices.Equal(f.prompts(), []string{"p p"})
			})
			p.down()
			f.until("the withdrawal", func() bool { return len(f.resources()) == 2 && len(f.templates()) == 1 })
			if got := f.do(f.read("x:a")); !strings.Contains(got.body, "text of x:a") {
				t.Errorf("what is declared: %s", got.body)
			}
		})
	}
}

// fakeResources is a fake upstream that lists resources by URI and reads
// what read says.
func fakeResources(t *testing.T, name string, uris ...string) (*fakemcp.Server, *peer) {
	f, p := fakePeer(t, true)
	f.Settings.Capabilities = map[string]any{"resources": map[string]any{"listChanged": true}}
	for _, uri := range uris {
		f.Settings.Resources = append(f.Settings.Resources, json.RawMessage(`{"name":"n-`+uri[strings.LastIndexByte(uri, ':')+1:]+`","uri":"`+uri+`"}`))
	}
	f.On(mcp.MethodSubscriptionsListen, (*fakemcp.Call).Hang)
	f.On(mcp.MethodResourcesRead, func(c *fakemcp.Call) {
		var params struct{ URI string }
		_ = json.Unmarshal(c.Params, &params)
		if !strings.HasPrefix(params.URI, name+":") {
			c.Error(http.StatusOK, mcp.CodeInvalidParams, "Resource not found", nil)
			return
		}
		c.Result(map[string]any{
			"resultType": "complete", "ttlMs": 1500, "cacheScope": "public", "contents": []any{map[string]any{"uri": params.URI, "text": name, "new": 1}}, "newer": []int{2},
			"_meta": map[string]any{"mine": true},
		})
	})
	return f, p
}

// TestUpstreamReadsInOrder: what nothing lists is asked of each upstream in
// turn, but never what one lists and its owner left out.
func TestUpstreamReadsInOrder(t *testing.T) {
	first, one := fakeResources(t, "a", "a:seen", "a:hidden")
	second, two := fakeResources(t, "b", "b:seen")
	third, three := fakeResources(t, "c", "c:seen", "c:other")
	hiding, picky := one.upstream("a", ""), three.upstream("c", "")
	hiding.Exclude = []string{"n-hidden"}
	picky.Include = []string{"n-seen"}
	f := start(t, fronting(hiding, two.upstream("b", ""), picky), hurried)
	f.until("the resources", func() bool { return len(f.resources()) == 3 })
	for uri, want := range map[string]string{
		"a:seen": `"text":"a"`, "b:unlisted": `"text":"b"`, "a:unlisted": `"text":"a"`, "a:hidden": `Resource not found`,
		"c:seen": `"text":"c"`, "c:other": `Resource not found`, "c:unlisted": `Resource not found`, "nobodys": `Resource not found`,
	} {
		if got := f.do(f.read(uri)); !strings.Contains(got.body, want) {
			t.Errorf("%s: %s", uri, got.body)
		}
	}
	// What an upstream says passes as it is, and its ttl with it.
	want := `{"contents":[{"new":1,"text":"b","uri":"b:seen"}],"resultType":"complete","ttlMs":1500,"cacheScope":"private","newer":[2],"_meta":{"io.modelcontextprotocol/serverInfo":`
	if got := f.do(f.read("b:seen")); !strings.Contains(got.body, want) || !strings.Contains(got.body, `,"mine":true}`) {
		t.Errorf("got  %s\nwant %s", got.body, want)
	}
	if n := second.Count(mcp.MethodResourcesRead); n == 0 {
		t.Error("the second was never asked")
	}
	if first.Count(mcp.MethodResourcesRead) == 0 || third.Count(mcp.MethodResourcesRead) != 1 {
		t.Errorf("asked %d and %d times", first.Count(mcp.MethodResourcesRead), third.Count(mcp.MethodResourcesRead))
	}
	// One that is away is no proof that there is no such resource.
	one.down()
	f.until("word of the loss", func() bool { return strings.HasPrefix(f.upstreams(), "a Unavailable") })
	if got := f.do(f.read("nobodys")); got.errorCode() != mcp.CodeInternalError || !strings.Contains(got.body, "UpstreamUnavailable") {
		t.Errorf("answered %s", got.body)
	}
	if got := f.do(f.read("b:unlisted")); !strings.Contains(got.body, `"text":"b"`) {
		t.Errorf("answered %s", got.body)
	}
}

// TestUpstreamListThatFails: it takes no other list with it, and what was
// known of it stays.
func TestUpstreamListThatFails(t *testing.T) {
	server, p := fakePeer(t, true, "a")
	server.Settings.Capabilities = map[string]any{"tools": map[string]any{}, "prompts": map[string]any{}, "resources": map[string]any{}}
	server.Settings.Prompts = []json.RawMessage{json.RawMessage(`{"name":"ask"}`)}
	f := start(t, fronting(p.upstream("u", "")), hurried)
	f.until("the prompt", func() bool { return slices.Equal(f.prompts(), []string{"ask ask"}) })
	server.On(mcp.MethodPromptsList, func(c *fakemcp.Call) { c.Error(http.StatusOK, mcp.CodeInternalError, "broken", nil) })
	server.SetTools(2)
	f.lists("alpha", "own", "tool-2")
	if got := f.prompts(); !slices.Equal(got, []string{"ask ask"}) {
		t.Errorf("prompts %q", got)
	}
	if got := f.upstreams(); !strings.HasPrefix(got, "u Ready 2") {
		t.Errorf("report %s", got)
	}
}

// TestUpstreamConflictsOfKinds: what is declared wins in every list, else the
// first upstream, and the report says which entries lost.
func TestUpstreamConflictsOfKinds(t *testing.T) {
	_, one := fakeResources(t, "a", "x:a", "y:1")
	_, two := fakeResources(t, "b", "y:1", "y:2")
	c := kinds(nil)
	c.Upstreams, c.Policy = []serverconfig.Upstream{one.upstream("a", "a_"), two.upstream("b", "b_")}, &serverconfig.ToolsPolicy{Max: 100, Conflicts: "Oldest"}
	f := start(t, c, hurried)
	f.until("the resources", func() bool {
		return slices.Equal(f.resources(), []string{"x:a x", "x:b x", "y:1 a_n-1", "y:2 b_n-2"})
	})
	want := []podreport.NotServed{{Kind: "resource", Name: "x:a", Reason: "Conflict"}, {Kind: "resource", Name: "y:1", Reason: "Conflict"}}
	if got := f.server.Report().NotServed; !slices.Equal(got, want) {
		t.Errorf("not served %v", got)
	}
}
