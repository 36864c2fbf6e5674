// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// told are the abilities of a server that tells of changes of its tools.
var told = client.Abilities{Tools: true, ToolsChanged: true}

func listing(definitions ...string) Listing {
	list := &client.Lists{}
	for _, d := range definitions {
		var tool struct{ Name string }
		if err := json.Unmarshal([]byte(d), &tool); err != nil {
			panic(err)
		}
		list.Tools = append(list.Tools, client.Entry{ID: tool.Name, Name: tool.Name, Definition: json.RawMessage(d)})
	}
	return Listing{Lists: list, Can: told}
}

func named(names ...string) Listing {
	var all []string
	for _, n := range names {
		all = append(all, `{"name":"`+n+`","description":"d","inputSchema":{"type":"object"}}`)
	}
	return listing(all...)
}

// composed gives the names that are served and those that are not, with why.
func composed(c *serverconfig.Config, listings map[string]Listing) (served, refused []string) {
	out := Compose(c, listings)
	for _, t := range out.Config.Tools {
		served = append(served, t.Name+" "+t.Source)
	}
	for _, n := range out.NotServed {
		refused = append(refused, n.Name+" "+n.Reason)
	}
	return served, refused
}

func TestComposeOrder(t *testing.T) {
	declared := serverconfig.Tool{Name: "a_own", Source: "mcptool/own"}
	two := []serverconfig.Upstream{{Name: "a", Prefix: "a_"}, {Name: "b"}}
	for name, test := range map[string]struct {
		upstreams       []serverconfig.Upstream
		policy          serverconfig.ToolsPolicy
		listings        map[string]Listing
		served, refused []string
	}{
		"prefix and order": {
			two, serverconfig.ToolsPolicy{Max: 9}, map[string]Listing{"a": named("z", "x"), "b": named("y")},
			[]string{"a_own mcptool/own", "a_z upstream/a", "a_x upstream/a", "y upstream/b"}, nil,
		},
		"an upstream that is not there": {
			two, serverconfig.ToolsPolicy{Max: 9}, map[string]Listing{"b": named("y")}, []string{"a_own mcptool/own", "y upstream/b"}, nil,
		},
		"declared wins": {
			two, serverconfig.ToolsPolicy{Max: 9, Conflicts: "Newest"}, map[string]Listing{"a": named("own", "x")},
			[]string{"a_own mcptool/own", "a_x upstream/a"}, []string{"a_own Conflict"},
		},
		"own names, then final ones": {
			[]serverconfig.Upstream{{Name: "a", Prefix: "a_", Include: []string{"get*"}, Exclude: []string{"*_x"}}},
			serverconfig.ToolsPolicy{Max: 9, Exclude: []string{"a_get2"}, Include: []string{"a_*"}},
			map[string]Listing{"a": named("get1", "get2", "get_x", "set")}, []string{"a_own mcptool/own", "a_get1 upstream/a"}, nil,
		},
		"override before filter and max": {
			two, serverconfig.ToolsPolicy{Max: 1, Overrides: []serverconfig.Override{{Name: "a_z", Rename: "renamed"}}, Filter: "tool.name != 'a_x'"},
			map[string]Listing{"a": named("x", "z"), "b": named("y")},
			[]string{"a_own mcptool/own", "renamed upstream/a"}, []string{"y OverMax"},
		},
		"oldest": {
			two, serverconfig.ToolsPolicy{Max: 9, Conflicts: "Oldest"}, map[string]Listing{"a": named("x"), "b": named("a_x")},
			[]string{"a_own mcptool/own", "a_x upstream/a"}, []string{"a_x Conflict"},
		},
		"newest": {
			two, serverconfig.ToolsPolicy{Max: 9, Conflicts: "Newest"}, map[string]Listing{"a": named("x"), "b": named("a_x")},
			[]string{"a_own mcptool/own", "a_x upstream/b"}, []string{"a_x Conflict"},
		},
		"hide all": {
			two, serverconfig.ToolsPolicy{Max: 9, Conflicts: "HideAll", Reserved: []string{"y"}}, map[string]Listing{"a": named("x"), "b": named("a_x", "y")},
			[]string{"a_own mcptool/own"}, []string{"a_x Conflict", "a_x Conflict", "y Conflict"},
		},
		"names, tasks, filters that fail": {
			two, serverconfig.ToolsPolicy{Max: 9, Filter: "tool.metadata.nope == '' || tool.name == 'b'"}, map[string]Listing{"b": listing(
				`{"name":"a b","inputSchema":{}}`, `{"name":"t","inputSchema":{},"execution":{"taskSupport":"required"}}`, `{"name":"b","inputSchema":{}}`, `{"name":"c","inputSchema":{}}`,
			)},
			[]string{"a_own mcptool/own", "b upstream/b"}, []string{"a b InvalidName", "t TasksUnsupported", "c FilterFailed"},
		},
		"none at all": {two, serverconfig.ToolsPolicy{}, map[string]Listing{"b": named("y")}, []string{"a_own mcptool/own"}, []string{"y OverMax"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := &serverconfig.Config{Tools: []serverconfig.Tool{declared}, Upstreams: test.upstreams, Policy: &test.policy}
			served, refused := composed(config, test.listings)
			if !slices.Equal(served, test.served) || !slices.Equal(refused, test.refused) {
				t.Errorf("served %q\nrefused %q", served, refused)
			}
			if len(config.Tools) != 1 {
				t.Error("the declared catalog was changed")
			}
		})
	}
}

// TestDefinitionsPassUnharmed: all but what is declared otherwise stays byte
// for byte.
func TestDefinitionsPassUnharmed(t *testing.T) {
	config := &serverconfig.Config{
		Upstreams: []serverconfig.Upstream{{Name: "a", Prefix: "p_", Metadata: map[string]string{"tier": "1", "role": "x"}}},
		Policy: &serverconfig.ToolsPolicy{Max: 9, Overrides: []serverconfig.Override{
			{Name: "p_b", Title: "T", Description: "D", Annotations: json.RawMessage(`{"readOnlyHint":true}`), Metadata: map[string]string{"role": "y"}},
		}},
	}
	out := Compose(config, map[string]Listing{"a": listing(
		`{"x-new":[1.50, 1e3],"name":"a","inputSchema":{"type":"object","$ref":"https://example.com/x","n":1.0},"outputSchema":{"type":"array"},"_meta":{"k":"v"}}`,
		`{"name":"b","title":"old","description":"old","inputSchema":{"type":"object"}}`,
	)})
	want := []string{
		`{"x-new":[1.50, 1e3],"name":"p_a","inputSchema":{"type":"object","$ref":"https://example.com/x","n":1.0},"outputSchema":{"type":"array"},"_meta":{"k":"v"},"description":"(from upstream a)"}`,
		`{"name":"p_b","title":"T","description":"D","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`,
	}
	for i, tool := range out.Config.Tools {
		if string(tool.Definition) != want[i] {
			t.Errorf("got %s", tool.Definition)
		}
	}
	if m := out.Config.Tools[1].Metadata; m["tier"] != "1" || m["role"] != "y" {
		t.Errorf("metadata %v", m)
	}
}

func TestCaching(t *testing.T) {
	ttl := 2500 * time.Millisecond
	config := &serverconfig.Config{CacheSeconds: 5, Upstreams: []serverconfig.Upstream{{Name: "a"}, {Name: "b"}}, Policy: &serverconfig.ToolsPolicy{}}
	for name, test := range map[string]struct {
		listing Listing
		seconds int32
		scope   serverconfig.CacheScope
	}{
		"its ttl":  {Listing{Lists: &client.Lists{TTL: &ttl}, Can: told}, 2, ""},
		"untold":   {Listing{Lists: &client.Lists{}, Can: client.Abilities{Tools: true}}, 0, ""},
		"no limit": {Listing{Lists: &client.Lists{}, Can: told}, 5, ""},
		"private":  {Listing{Lists: &client.Lists{Private: true}, Can: told}, 5, serverconfig.CachePrivate},
	} {
		out := Compose(config, map[string]Listing{"a": test.listing}).Config
		if out.CacheSeconds != test.seconds || out.CacheScope != test.scope {
			t.Errorf("%s: %d s, %q", name, out.CacheSeconds, out.CacheScope)
		}
	}
}
