// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// registration makes an object of kind on server s from the YAML of its spec.
func registration(t *testing.T, kind Kind, name string, after time.Duration, spec string) mcpv1.Registration {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: metav1.NewTime(epoch.Add(after))}
	var out mcpv1.Registration
	var into any
	switch kind {
	case KindResource:
		r := &mcpv1.MCPResource{ObjectMeta: meta}
		out, into = r, &r.Spec
	case KindPrompt:
		p := &mcpv1.MCPPrompt{ObjectMeta: meta}
		out, into = p, &p.Spec
	default:
		tool := &mcpv1.MCPTool{ObjectMeta: meta}
		out, into = tool, &tool.Spec
	}
	if err := yaml.UnmarshalStrict([]byte(spec), into); err != nil {
		t.Fatalf("spec of %s: %v", name, err)
	}
	out.GetRegistrationSpec().ServerRefs = []mcpv1.ServerRef{{Name: "s"}}
	return out
}

func TestCompileResources(t *testing.T) {
	tests := map[string]struct {
		spec    string
		reason  string // empty: accepted
		message string
	}{
		"text":               {spec: `{uri: "docs://a", text: hello}`},
		"empty text":         {spec: `{uri: "docs://a", text: ""}`},
		"blob":               {spec: `{uri: "docs://a", blob: aGk=}`},
		"template":           {spec: `{uriTemplate: "docs://{a}{?b}", variables: [{name: a, completions: [x]}], expression: {text: args.a}}`},
		"http":               {spec: `{uriTemplate: "docs://{a}", http: {url: "http://api/{a}"}}`},
		"http by path":       {spec: `{uri: "docs://a", http: {url: "http://api/{x}", path: [{name: x, value: y}]}}`},
		"uri":                {`{uri: "docs:// %zz", text: a}`, mcpv1.ReasonInvalidURI, "spec.uri cannot"},
		"template list":      {`{uriTemplate: "docs://{a*}", text: a}`, mcpv1.ReasonInvalidURI, "spec.uriTemplate: "},
		"variable":           {`{uriTemplate: "docs://{a}", variables: [{name: b, completions: [x]}], text: a}`, mcpv1.ReasonInvalidURI, `"b"`},
		"meta":               {`{uri: "docs://a", text: a, meta: [1]}`, mcpv1.ReasonInvalidMeta, "not an object"},
		"expression":         {`{uri: "docs://a", expression: {text: "1"}}`, mcpv1.ReasonInvalidExpression, "spec.expression.text"},
		"blob expression":    {`{uri: "docs://a", expression: {blob: "1"}}`, mcpv1.ReasonInvalidExpression, "spec.expression.blob"},
		"no response there":  {`{uri: "docs://a", expression: {text: response.body}}`, mcpv1.ReasonInvalidExpression, "response"},
		"http url":           {`{uri: "docs://a", http: {url: "http://api/%zz"}}`, mcpv1.ReasonInvalidURL, "spec.http.url"},
		"http placeholder":   {`{uriTemplate: "docs://{a}", http: {url: "http://api/{b}"}}`, mcpv1.ReasonInvalidURL, "{b}"},
		"http path":          {`{uri: "docs://a", http: {url: "http://api/", path: [{name: b, value: x}]}}`, mcpv1.ReasonInvalidURL, `"b"`},
		"http result":        {`{uri: "docs://a", http: {url: "http://api/", result: {text: "response.boddy"}}}`, mcpv1.ReasonInvalidExpression, "boddy"},
		"http query and key": {`{uri: "docs://a", http: {url: "http://api/", query: [{name: q, expression: "["}]}}`, mcpv1.ReasonInvalidExpression, "spec.http.query q"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { checkVerdict(t, KindResource, test.spec, test.reason, test.message) })
	}
}

func TestCompilePrompts(t *testing.T) {
	tests := map[string]struct {
		spec    string
		reason  string
		message string
	}{
		"text":           {spec: `{messages: [{role: User, content: {type: Text, text: hi}}]}`},
		"expression":     {spec: `{arguments: [{name: a, required: true}], messages: [{role: User, content: {type: Text, expression: args.a}}]}`},
		"own resource":   {spec: `{messages: [{role: User, content: {type: EmbeddedResource, uri: "docs://a"}}]}`},
		"bad expression": {`{messages: [{role: User, content: {type: Text, expression: "1"}}]}`, mcpv1.ReasonInvalidExpression, "spec.messages[0].content.expression"},
		"bad uri":        {`{messages: [{role: User, content: {type: ResourceLink, uriExpression: "1", text: x}}]}`, mcpv1.ReasonInvalidExpression, "uriExpression"},
		"meta":           {`{meta: [], messages: []}`, mcpv1.ReasonInvalidMeta, "not an object"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { checkVerdict(t, KindPrompt, test.spec, test.reason, test.message) })
	}
}

func checkVerdict(t *testing.T, kind Kind, spec, reason, message string) {
	t.Helper()
	c := Compile(registration(t, kind, "a", 0, spec))
	v := c.Verdict
	want := reason
	if reason == "" {
		want = mcpv1.ReasonAccepted
	}
	if v.Accepted != (reason == "") || v.Reason != want || !strings.Contains(v.Message, message) {
		t.Errorf("verdict %+v, want %q with %q", v, reason, message)
	}
	if made := c.Resource != nil || c.Prompt != nil; made != v.Accepted {
		t.Errorf("an entry was made: %v", made)
	}
	if again := Compile(registration(t, kind, "a", 0, spec)); again.Verdict != v || again.EntryDigest != c.EntryDigest {
		t.Error("compiled again it differs")
	}
}

// TestDefinitions: what a client sees, byte for byte.
func TestDefinitions(t *testing.T) {
	r := Compile(registration(t, KindResource, "runbook", 0, `{uri: "docs://a<b>", title: T, description: D, mimeType: text/markdown,
		annotations: {audience: [User, Assistant], priority: 0.50, lastModified: "2026-01-02T03:04:05Z"}, meta: {k: 1}, metadata: {x: "y"}, cacheSeconds: 7,
		icons: [{src: "https://a/i.png", theme: dark}], configMapKeyRef: {name: c, key: k}}`))
	want := `{"name":"runbook","uri":"docs://a<b>","title":"T","description":"D","mimeType":"text/markdown","icons":[{"src":"https://a/i.png","theme":"dark"}],` +
		`"annotations":{"audience":["user","assistant"],"priority":0.50,"lastModified":"2026-01-02T03:04:05Z"},"_meta":{"k":1}}`
	want = strings.Replace(want, "0.50", "0.5", 1) // YAML becomes JSON on its way.
	if got := string(r.Resource.Definition); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.Resource.File != "configmaps/c/k" || r.Resource.CacheSeconds != 7 || r.Resource.Source != "mcpresource/runbook" || r.Name() != "docs://a<b>" {
		t.Errorf("%+v", r.Resource)
	}
	if diff := cmp.Diff([]Ref{{Kind: RefConfigMap, Name: "c", Key: "k"}}, r.Refs); diff != "" {
		t.Error(diff)
	}
	p := Compile(registration(t, KindPrompt, "triage", 0, `{title: T, arguments: [{name: b, required: true, completions: [x]}, {name: a, title: A, description: D}],
		messages: [{role: Assistant, content: {type: Text, text: hi}}]}`))
	want = `{"name":"triage","title":"T","arguments":[{"name":"b","required":true},{"name":"a","title":"A","description":"D"}]}`
	if got := string(p.Prompt.Definition); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if p.Prompt.Messages[0].Role != "assistant" || p.Prompt.Arguments[0].Completions[0] != "x" {
		t.Errorf("%+v", p.Prompt)
	}
}

// TestKindsConform: every kind of registration has the same lifetime,
// conflicts and switch (G2), in lists of its own (G3).
func TestKindsConform(t *testing.T) {
	kinds := map[string]struct {
		kind   Kind
		list   List
		spec   string // with the identity "same"
		broken string
		other  string
	}{
		"tools":     {KindTool, Tools, `{name: same, expression: {text: "'%'"}}`, `{name: same, expression: {text: "1 +"}}`, "name same"},
		"resources": {KindResource, Resources, `{uri: "x:same", text: "%"}`, `{uri: "x:same", expression: {text: "1 +"}}`, "URI x:same"},
		"templates": {KindResource, Templates, `{uriTemplate: "x:{same}", text: "%"}`, `{uriTemplate: "x:{same}", expression: {text: "1 +"}}`, "URI template x:{same}"},
		"prompts":   {KindPrompt, Prompts, `{name: same, messages: [{role: User, content: {type: Text, text: "%"}}]}`, `{name: same, messages: [{role: User, content: {type: Text, expression: "1 +"}}]}`, "name same"},
	}
	// One of each list with the identity "same" stands beside all the time: it
	// is of another list and in nobody's way.
	neighbours := func(not string) (out []*Compiled) {
		for name, k := range kinds {
			if name != not {
				out = append(out, Compile(registration(t, k.kind, "neighbour-"+name, 0, strings.ReplaceAll(k.spec, "%", "n"))))
			}
		}
		return out
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			compile := func(object string, age time.Duration) *Compiled {
				return Compile(registration(t, k.kind, object, age, strings.ReplaceAll(k.spec, "%", object)))
			}
			old, young := compile("old", 0), compile("young", time.Hour)
			suspended := compile("suspended", -time.Hour)
			suspended.Suspended = true
			broken := Compile(registration(t, k.kind, "broken", -time.Hour, k.broken))
			for policy, winner := range map[string]string{"Oldest": "old", "Newest": "young", "HideAll": ""} {
				all := append(neighbours(name), young, suspended, old, broken)
				rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				c := Build(server(t, `{tools: {conflictPolicy: `+policy+`}}`), all, trust)
				for _, n := range neighbours(name) {
					if c.Served[n.ID] == nil || !c.Verdicts[n.ID].Accepted {
						t.Errorf("%s: %s was harmed: %+v", policy, n.ID, c.Verdicts[n.ID])
					}
				}
				for _, one := range []*Compiled{old, young} {
					v, served := c.Verdicts[one.ID], c.Served[one.ID] != nil
					if served != (one.ID.Name == winner) || v.Accepted != served {
						t.Errorf("%s: %s served %v, %+v", policy, one.ID, served, v)
					}
					if !served && (v.Reason != mcpv1.ReasonConflict || !strings.Contains(v.Message, k.other) || !strings.Contains(v.Message, string(k.kind)+" ")) {
						t.Errorf("%s: %s is told %+v", policy, one.ID, v)
					}
				}
				if c.Verdicts[suspended.ID].Reason != mcpv1.ReasonSuspended || c.Verdicts[broken.ID].Reason != mcpv1.ReasonInvalidExpression {
					t.Errorf("%s: %+v, %+v", policy, c.Verdicts[suspended.ID], c.Verdicts[broken.ID])
				}
				lists := map[List]int{Tools: len(c.Config.Tools), Resources: len(c.Config.Resources), Templates: len(c.Config.Templates), Prompts: len(c.Config.Prompts)}
				for list, n := range lists {
					want := 1
					if list == k.list && winner == "" {
						want = 0
					}
					if n != want {
						t.Errorf("%s: %d %s", policy, n, list)
					}
				}
			}
			alone := Build(server(t, `{}`), []*Compiled{young}, trust)
			if alone.Served[young.ID] == nil {
				t.Error("with the winner gone the next one is not served")
			}
		})
	}
}

// TestFilterIsAboutTools: include, exclude and filter leave other kinds alone.
func TestFilterIsAboutTools(t *testing.T) {
	c := Build(server(t, `{tools: {include: ["x"], filter: "false"}}`), []*Compiled{
		Compile(registration(t, KindResource, "a", 0, `{uri: "x:a", text: a}`)),
		Compile(registration(t, KindPrompt, "a", 0, `{messages: [{role: User, content: {type: Text, text: a}}]}`)),
		Compile(registration(t, KindTool, "a", 0, `{expression: {text: "''"}}`)),
	}, trust)
	if len(c.Served) != 2 || c.Verdicts[toolID("a")].Reason != mcpv1.ReasonFiltered {
		t.Errorf("%+v", c.Verdicts)
	}
}
