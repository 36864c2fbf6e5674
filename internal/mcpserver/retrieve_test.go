// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestRetrieve: mcp_retrieve lists and reads what its caller may read, no more
// than is asked for.
func TestRetrieve(t *testing.T) {
	_, p := fakeResources(t, "u", "u:1")
	text, picture := "häßlich", []byte("\x89PNG")
	g := startGuarded(t, func(c *serverconfig.Config) {
		c.Retrieve = true
		c.Upstreams, c.Policy = []serverconfig.Upstream{p.upstream("u", "")}, &serverconfig.ToolsPolicy{Max: 100}
		c.Resources = []serverconfig.Resource{
			resource("x:a", func(r *serverconfig.Resource) { r.Text = &text }),
			resource("x:p", func(r *serverconfig.Resource) { r.Text, r.Blob, r.MIMEType = nil, picture, "image/png" }),
			resource("x:z", func(r *serverconfig.Resource) { r.Text, r.Blob = nil, []byte{0, 1} }),
			resource("x:secret", nil),
		}
		c.Templates = []serverconfig.Resource{resource("x:t/{v}", nil)}
		c.Access = &serverconfig.Access{Rules: []serverconfig.AccessRule{{Resources: []string{"x:secret"}, When: ciOnly}}}
	})
	alice := g.token(nil)
	g.until("the resources", func() bool { return len(g.listedKeys(keyCI, "resources/list", "resources", "uri")) == 5 })
	if got := g.names(alice); !slices.Equal(got, []string{"mcp_retrieve"}) {
		t.Fatalf("listed %v", got)
	}
	for name, test := range map[string]struct{ token, args, want string }{
		"list": {alice, `{}`, `"structuredContent":{"resources":[{"name":"n-1","uri":"u:1","description":"(from upstream u)"},{"name":"x","uri":"x:a"},` +
			`{"name":"x","uri":"x:p"},{"name":"x","uri":"x:z"}],"resourceTemplates":[{"name":"x","uriTemplate":"x:t/{v}"}],"more":false}`},
		"list of who may see more": {keyCI, `{}`, `{"name":"x","uri":"x:secret"}`},
		"short list":               {alice, `{"limit":2}`, `{"name":"x","uri":"x:a"}],"resourceTemplates":[],"more":true}`},
		"exact list":               {alice, `{"limit":5}`, `"more":false}`},
		"read":                     {alice, `{"uri":"x:a"}`, `"content":[{"type":"text","text":"häßlich"}]`},
		"read a part":              {alice, `{"uri":"x:a","limit":2}`, `"content":[{"type":"text","text":"h"},{"type":"text","text":"(8 further bytes are left out; ask with a higher limit)"}]`},
		"by template":              {alice, `{"uri":"x:t/1"}`, `"text":"text of x:t/{v}"`},
		"picture":                  {alice, `{"uri":"x:p"}`, `{"type":"image","data":"iVBORw==","mimeType":"image/png"}`},
		"too large a picture":      {alice, `{"uri":"x:p","limit":1}`, `bytes of image/png are left out`},
		"binary":                   {alice, `{"uri":"x:z"}`, `{"type":"resource","resource":{"uri":"x:z","mimeType":"application/octet-stream","blob":"AAE="}}`},
		"upstream":                 {alice, `{"uri":"u:1"}`, `{"type":"text","text":"u"}`},
		"upstream, unlisted":       {alice, `{"uri":"u:unlisted"}`, `{"type":"text","text":"u"}`},
		"hidden":                   {alice, `{"uri":"x:secret"}`, `There is no resource x:secret that you may read.`},
		"seen":                     {keyCI, `{"uri":"x:secret"}`, `"text":"text of x:secret"`},
		"unknown":                  {alice, `{"uri":"x:none"}`, `"isError":true`},
		"wrong limit":              {alice, `{"limit":0}`, `InvalidArguments`},
		"wrong argument":           {alice, `{"url":"x:a"}`, `InvalidArguments`},
	} {
		if got := g.do(as(g.callModern("mcp_retrieve", test.args), test.token)); !strings.Contains(got.body, test.want) || got.errorCode() != 0 {
			t.Errorf("%s: got  %s\nwant %s", name, got.body, test.want)
		}
	}
}

// TestRetrieveCollides: a declared tool of the name stands in its place, and one
// of an upstream does not.
func TestRetrieveCollides(t *testing.T) {
	_, p := fakePeer(t, true, "mcp_retrieve", "a")
	c := fronting(p.upstream("u", ""))
	c.Retrieve = true
	f := start(t, c, hurried)
	f.lists("a", "mcp_retrieve", "own")
	if got := f.do(f.callModern("mcp_retrieve", `{}`)); !strings.Contains(got.body, `"resources":[]`) {
		t.Errorf("answered %s", got.body)
	}
	want := []podreport.NotServed{{Kind: "tool", Name: "mcp_retrieve", Reason: "Conflict"}}
	if got := f.server.Report().NotServed; !slices.Equal(got, want) {
		t.Errorf("not served %v", got)
	}
	c = config(tool("mcp_retrieve", nil))
	c.Retrieve = true
	f.reload(c)
	if got := f.do(f.callModern("mcp_retrieve", `{}`)); got.text() != "mcp_retrieve" {
		t.Errorf("answered %s", got.body)
	}
	if got := f.server.Report().NotServed; !slices.Equal(got, want) {
		t.Errorf("not served %v", got)
	}
}
