// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// everything lists one entry of each kind with resources by URI.
func everything(uris ...string) Listing {
	l := Listing{Lists: &client.Lists{}, Can: client.Abilities{Resources: true, ResourcesChanged: true, Prompts: true, PromptsChanged: true}}
	for _, uri := range uris {
		name := "n" + uri[len(uri)-1:]
		l.Resources = append(l.Resources, client.Entry{ID: uri, Name: name, Definition: json.RawMessage(`{"x":1.0,"name":"` + name + `","uri":"` + uri + `","size":1e3}`)})
	}
	l.Templates = []client.Entry{{ID: "t:{a}", Name: "all", Definition: json.RawMessage(`{"uriTemplate":"t:{a}","name":"all","description":"d"}`)}}
	l.Prompts = []client.Entry{{ID: "p", Name: "p", Definition: json.RawMessage(`{"name":"p","arguments":[{"name":"a","new":1}]}`)}}
	return l
}

func identities(c *serverconfig.Config) (out []string) {
	for _, r := range slices.Concat(c.Resources, c.Templates) {
		out = append(out, r.URI+" "+r.Source)
	}
	for _, p := range c.Prompts {
		out = append(out, p.Name+" "+p.Source)
	}
	return out
}

func TestComposeKinds(t *testing.T) {
	declared := func(c *serverconfig.Config) {
		c.Resources = []serverconfig.Resource{{URI: "r:1", Source: "mcpresource/own"}}
		c.Prompts = []serverconfig.Prompt{{Name: "own", Source: "mcpprompt/own"}}
	}
	a, b := serverconfig.Upstream{Name: "a"}, serverconfig.Upstream{Name: "b", Prefix: "b_"}
	conflict := func(kind, name string) podreport.NotServed {
		return podreport.NotServed{Kind: kind, Name: name, Reason: podreport.ReasonConflict}
	}
	for name, test := range map[string]struct {
		config  serverconfig.Config
		list    map[string]Listing
		want    []string
		refused []podreport.NotServed
	}{
		"prefix on prompts, never on URIs": {
			serverconfig.Config{Upstreams: []serverconfig.Upstream{b}}, map[string]Listing{"b": everything("r:2")},
			[]string{"r:1 mcpresource/own", "r:2 upstream/b", "t:{a} upstream/b", "own mcpprompt/own", "b_p upstream/b"}, nil,
		},
		"declared wins, then the first": {
			serverconfig.Config{Upstreams: []serverconfig.Upstream{a, b}}, map[string]Listing{"a": everything("r:1", "r:2"), "b": everything("r:2", "r:3")},
			[]string{"r:1 mcpresource/own", "r:2 upstream/a", "r:3 upstream/b", "t:{a} upstream/a", "own mcpprompt/own", "p upstream/a", "b_p upstream/b"},
			[]podreport.NotServed{conflict("resource", "r:1"), conflict("resource", "r:2"), conflict("template", "t:{a}")},
		},
		"hide all, and what is reserved": {
			serverconfig.Config{
				Upstreams: []serverconfig.Upstream{a, b},
				Policy:    &serverconfig.ToolsPolicy{Conflicts: "HideAll", ReservedPrompts: []string{"p"}, ReservedResources: []string{"r:3"}},
			}, map[string]Listing{"a": everything("r:2"), "b": everything("r:2", "r:3")},
			[]string{"r:1 mcpresource/own", "own mcpprompt/own", "b_p upstream/b"},
			[]podreport.NotServed{
				conflict("resource", "r:2"), conflict("resource", "r:2"), conflict("resource", "r:3"),
				conflict("template", "t:{a}"), conflict("template", "t:{a}"), conflict("prompt", "p"),
			},
		},
		"include and exclude are of names, filter and max of tools": {
			serverconfig.Config{
				Upstreams: []serverconfig.Upstream{{Name: "a", Include: []string{"n*", "p"}, Exclude: []string{"n3"}}},
				Policy:    &serverconfig.ToolsPolicy{Max: 0, Include: []string{"none"}, Filter: "false"},
			}, map[string]Listing{"a": everything("r:2", "r:3")},
			[]string{"r:1 mcpresource/own", "r:2 upstream/a", "own mcpprompt/own", "p upstream/a"}, nil,
		},
		"what cannot be served": {
			serverconfig.Config{Upstreams: []serverconfig.Upstream{a}}, map[string]Listing{"a": {Lists: &client.Lists{
				Resources: []client.Entry{{ID: "r:" + strings.Repeat("x", maxURI), Definition: json.RawMessage(`{}`)}, {ID: "r:\n", Definition: json.RawMessage(`{"uri":"r:\n"}`)}},
				Prompts:   []client.Entry{{ID: "p\u0000", Name: "p\u0000", Definition: json.RawMessage(`{"name":"p\u0000"}`)}},
			}}},
			[]string{"r:1 mcpresource/own", "own mcpprompt/own"},
			[]podreport.NotServed{
				{Kind: "resource", Name: "r:" + strings.Repeat("x", maxURI), Reason: "InvalidURI"}, {Kind: "resource", Name: "r:\n", Reason: "InvalidURI"},
				{Kind: "prompt", Name: "p\u0000", Reason: "InvalidName"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			declared(&test.config)
			out := Compose(&test.config, test.list)
			if got := identities(out.Config); !slices.Equal(got, test.want) {
				t.Errorf("served %q", got)
			}
			if !slices.Equal(out.NotServed, test.refused) {
				t.Errorf("refused %v", out.NotServed)
			}
		})
	}
}

// TestKindsPassUnharmed: all but name and an absent description stays byte for
// byte.
func TestKindsPassUnharmed(t *testing.T) {
	c := &serverconfig.Config{Upstreams: []serverconfig.Upstream{{Name: "u", Prefix: "u_", Metadata: map[string]string{"tier": "1"}}}}
	out := Compose(c, map[string]Listing{"u": everything("r:1")}).Config
	for want, got := range map[string]json.RawMessage{
		`{"x":1.0,"name":"u_n1","uri":"r:1","size":1e3,"description":"(from upstream u)"}`:    out.Resources[0].Definition,
		`{"uriTemplate":"t:{a}","name":"u_all","description":"d"}`:                            out.Templates[0].Definition,
		`{"name":"u_p","arguments":[{"name":"a","new":1}],"description":"(from upstream u)"}`: out.Prompts[0].Definition,
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if p := out.Prompts[0]; p.Upstream.Prompt != "p" || p.Metadata["tier"] != "1" {
		t.Errorf("prompt %+v", p)
	}
}

// TestReaders: an upstream is asked for what is not listed unless it has an
// include, and never for what it lists and is not served from it.
func TestReaders(t *testing.T) {
	c := &serverconfig.Config{Upstreams: []serverconfig.Upstream{
		{Name: "a", Exclude: []string{"n2", "all"}}, {Name: "b"}, {Name: "c", Include: []string{"*"}}, {Name: "d"}, {Name: "away"},
	}}
	got := Compose(c, map[string]Listing{
		"a": everything("r:1", "r:2"), "b": everything("r:1"), "c": everything(), "d": {Lists: &client.Lists{}, Can: client.Abilities{Tools: true}},
	}).Config.Readers
	want := []serverconfig.UpstreamResource{{Upstream: "a", Hidden: []string{"r:2", "t:{a}"}}, {Upstream: "b", Hidden: []string{"r:1"}}}
	if !slices.EqualFunc(got, want, func(a, b serverconfig.UpstreamResource) bool {
		return a.Upstream == b.Upstream && slices.Equal(a.Hidden, b.Hidden)
	}) {
		t.Errorf("readers %+v", got)
	}
}
