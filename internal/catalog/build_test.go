// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestFilters: include, exclude and filter, and what each hides.
func TestFilters(t *testing.T) {
	specs := map[string]string{
		"get-a":  `{expression: {text: "'a'"}, metadata: {team: x}}`,
		"get-b":  `{expression: {text: "'b'"}}`,
		"put-c":  `{name: put_c, expression: {text: "'c'"}, annotations: {readOnlyHint: true}}`,
		"hidden": `{expression: {text: "'d'"}, suspend: true}`,
		"broken": `{expression: {text: "1 +"}}`,
	}
	tests := map[string]struct {
		spec    string
		served  []string
		server  string // reason of the server's own verdict
		reasons map[string]string
	}{
		"no policy": {
			spec: `{}`, served: []string{"get-a", "get-b", "put_c"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"hidden": mcpv1.ReasonSuspended, "broken": mcpv1.ReasonInvalidExpression},
		},
		"include": {
			spec: `tools: {include: ["get-*"]}`, served: []string{"get-a", "get-b"}, server: mcpv1.ReasonAccepted,
			// The broken one is told what is wrong with it, not that it is filtered.
			reasons: map[string]string{"put-c": mcpv1.ReasonFiltered, "broken": mcpv1.ReasonInvalidExpression},
		},
		"exclude the name on the wire": {
			spec: `tools: {exclude: ["put_c"]}`, served: []string{"get-a", "get-b"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"put-c": mcpv1.ReasonFiltered},
		},
		"exclude wins over include": {
			spec: `tools: {include: ["*"], exclude: ["get-?"]}`, served: []string{"put_c"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"get-a": mcpv1.ReasonFiltered, "get-b": mcpv1.ReasonFiltered},
		},
		"filter over annotations": {
			spec:   `tools: {filter: "has(tool.annotations.readOnlyHint) && tool.annotations.readOnlyHint"}`,
			served: []string{"put_c"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"get-a": mcpv1.ReasonFiltered},
		},
		"filter over the source": {
			spec: `tools: {filter: "tool.source == 'mcptool/get-b'"}`, served: []string{"get-b"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"put-c": mcpv1.ReasonFiltered},
		},
		"filter that fails for some hides these": {
			spec: `tools: {filter: "tool.metadata.team == 'x'"}`, served: []string{"get-a"}, server: mcpv1.ReasonAccepted,
			reasons: map[string]string{"get-b": mcpv1.ReasonFiltered, "put-c": mcpv1.ReasonFiltered},
		},
		"filter that does not compile hides all": {
			spec: `tools: {filter: "tool.nme == 'x'"}`, served: []string{}, server: mcpv1.ReasonInvalidFilter,
			reasons: map[string]string{"get-a": mcpv1.ReasonFiltered, "broken": mcpv1.ReasonInvalidExpression, "hidden": mcpv1.ReasonSuspended},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var tools []*mcpv1.MCPTool
			for object, spec := range specs {
				tools = append(tools, tool(t, object, spec))
			}
			c := build(server(t, test.spec), tools...)
			if diff := cmp.Diff(test.served, servedNames(c)); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
			if c.Server.Reason != test.server || c.Server.Accepted != (test.server == mcpv1.ReasonAccepted) {
				t.Errorf("the server's verdict is %+v, want %s", c.Server, test.server)
			}
			for object, reason := range test.reasons {
				if v := c.Verdicts[toolID(object)]; v.Accepted || v.Reason != reason || v.Message == "" {
					t.Errorf("verdict on %s is %+v, want %s", object, v, reason)
				}
			}
			if len(c.Verdicts) != len(specs) {
				t.Errorf("%d verdicts on %d tools", len(c.Verdicts), len(specs))
			}
		})
	}
}

// TestConflicts: three tools of one name under each policy; the losers name
// the winner, and deleting the winner promotes the next.
func TestConflicts(t *testing.T) {
	old := aged(t, "old", 0, `{name: same, expression: {text: "'old'"}}`)
	mid := aged(t, "mid", time.Hour, `{name: same, expression: {text: "'mid'"}}`)
	young := aged(t, "young", 2*time.Hour, `{name: same, expression: {text: "'young'"}}`)
	twin := aged(t, "another", 0, `{name: same, expression: {text: "'twin'"}}`)
	other := tool(t, "other", `{expression: {text: "'other'"}}`)
	tests := map[string]struct {
		policy string
		tools  []*mcpv1.MCPTool
		winner string // metadata.name; empty when all are hidden
	}{
		"default is the oldest":          {"", []*mcpv1.MCPTool{young, old, mid}, "old"},
		"oldest":                         {"Oldest", []*mcpv1.MCPTool{mid, young, old}, "old"},
		"oldest is gone":                 {"Oldest", []*mcpv1.MCPTool{young, mid}, "mid"},
		"newest":                         {"Newest", []*mcpv1.MCPTool{old, young, mid}, "young"},
		"newest is gone":                 {"Newest", []*mcpv1.MCPTool{old, mid}, "mid"},
		"of one age the name decides":    {"Oldest", []*mcpv1.MCPTool{old, twin}, "another"},
		"newest of one age: name too":    {"Newest", []*mcpv1.MCPTool{old, twin}, "another"},
		"hide all":                       {"HideAll", []*mcpv1.MCPTool{old, young, mid}, ""},
		"hide all hides nothing unique":  {"HideAll", []*mcpv1.MCPTool{mid}, "mid"},
		"a filtered one is no candidate": {"exclude-old", []*mcpv1.MCPTool{old, mid}, "mid"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := server(t, `{}`)
			switch test.policy {
			case "":
			case "exclude-old":
				s = server(t, `tools: {filter: "tool.source != 'mcptool/old'"}`)
			default:
				s = server(t, `tools: {conflictPolicy: `+test.policy+`}`)
			}
			c := build(s, append([]*mcpv1.MCPTool{other}, test.tools...)...)
			if !c.Verdicts[toolID("other")].Accepted {
				t.Errorf("a tool of another name was harmed: %+v", c.Verdicts[toolID("other")])
			}
			for _, tool := range test.tools {
				v := c.Verdicts[IDOf(tool)]
				switch {
				case tool.Name == test.winner:
					if !v.Accepted || c.Served[IDOf(tool)] == nil {
						t.Errorf("the winner %s was refused: %+v", tool.Name, v)
					}
				case test.policy == "exclude-old":
				case v.Accepted || v.Reason != mcpv1.ReasonConflict || !strings.Contains(v.Message, "same"):
					t.Errorf("verdict on %s: %+v", tool.Name, v)
				case test.winner != "" && !strings.Contains(v.Message, "MCPTool "+test.winner+" "):
					t.Errorf("%s is not told of the winner: %s", tool.Name, v.Message)
				}
			}
			want := []string{"other", "same"}
			if test.winner == "" {
				want = want[:1]
			}
			if diff := cmp.Diff(want, servedNames(c)); diff != "" {
				t.Errorf("served (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrderDoesNotMatter: the same tools in any order give the same bytes and
// the same verdicts (A08).
func TestOrderDoesNotMatter(t *testing.T) {
	for _, policy := range []string{"Oldest", "Newest", "HideAll"} {
		t.Run(policy, func(t *testing.T) {
			s := server(t, `{tools: {conflictPolicy: `+policy+`}, cors: {allowedOrigins: ["https://b", "https://a"]}}`)
			var tools []*mcpv1.MCPTool
			for i := range 40 {
				tools = append(tools, aged(t, fmt.Sprintf("t%d", i), time.Duration(i%3)*time.Hour, fmt.Sprintf(
					`{name: n%d, metadata: {a: "1", b: "2", c: "3"}, http: {method: GET, url: "http://api",
					headers: [{name: A, secretKeyRef: {name: s%d, key: k}}, {name: B, configMapKeyRef: {name: c, key: k%d}}]}}`, i%30, i%5, i%4)))
			}
			first := build(s, tools...)
			want := encode(t, first)
			random := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				random.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
				c := build(s, tools...)
				if got := encode(t, c); got != want {
					t.Fatalf("the config depends on the order:\n%s", cmp.Diff(want, got))
				}
				if diff := cmp.Diff(first.Verdicts, c.Verdicts); diff != "" {
					t.Fatalf("a verdict depends on the order:\n%s", diff)
				}
				if diff := cmp.Diff(first.Refs, c.Refs); diff != "" {
					t.Fatalf("refs depend on the order:\n%s", diff)
				}
			}
		})
	}
}

func encode(t *testing.T, c *Catalog) string {
	t.Helper()
	raw, err := serverconfig.Encode(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestBrokenToolHarmsNoOther: with or without it, the bytes are the same.
func TestBrokenToolHarmsNoOther(t *testing.T) {
	s := server(t, `{tools: {filter: "size(tool.description) >= 0"}}`)
	good := []*mcpv1.MCPTool{
		tool(t, "a", `{expression: {text: "'a'"}}`),
		tool(t, "b", `{http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: s, key: k}}]}}`),
	}
	want := encode(t, build(s, good...))
	for name, spec := range map[string]string{
		"schema":     `{inputSchema: {type: 7}}`,
		"expression": `{expression: {text: "("}}`,
		"url":        `{http: {method: GET, url: "http://%", headers: [{name: A, secretKeyRef: {name: other, key: k}}]}}`,
		"meta":       `{meta: 1}`,
		"same name":  `{name: a, inputSchema: {type: 7}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := build(s, append([]*mcpv1.MCPTool{tool(t, "0-broken", spec)}, good...)...)
			if got := encode(t, c); got != want {
				t.Errorf("a broken tool changed the catalog:\n%s", cmp.Diff(want, got))
			}
			if v := c.Verdicts[toolID("0-broken")]; v.Accepted {
				t.Errorf("the broken tool was accepted: %+v", v)
			}
			if diff := cmp.Diff([]Ref{{Kind: RefSecret, Name: "s", Key: "k"}}, c.Refs); diff != "" {
				t.Errorf("refs of a refused tool count (-want +got):\n%s", diff)
			}
		})
	}
}

// TestGenerationDoesNotMatter: an HPA's step must not change the catalog.
func TestGenerationDoesNotMatter(t *testing.T) {
	s := server(t, `{}`)
	a := tool(t, "a", `{expression: {text: "'a'"}}`)
	want := encode(t, build(s, a))
	s.Generation, a.Generation, s.ResourceVersion = 7, 9, "12"
	three := int32(3)
	s.Spec.Replicas = &three
	if got := encode(t, build(s, a)); got != want {
		t.Errorf("the catalog depends on the generation:\n%s", cmp.Diff(want, got))
	}
}
