// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func serverOf(t *testing.T, name, spec string) *mcpv1.MCPServer {
	t.Helper()
	s := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &s.Spec); err != nil {
		t.Fatal(err)
	}
	return s
}

func address(s *mcpv1.MCPServer) string { return "http://" + s.Name + "-mcp.ns.svc:8080/mcp" }

// TestUpstreamsInCatalog: what the pods are told of upstreams, byte for byte.
func TestUpstreamsInCatalog(t *testing.T) {
	others := map[string]*mcpv1.MCPServer{
		"orders": serverOf(t, "orders", `{type: Container, container: {image: a}, probe: {headers: [{name: X-Probe, value: "1"}]}}`),
		"vendor": serverOf(t, "vendor", `{type: External, external: {url: "https://vendor.test/mcp?k=v", headers: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: s, key: k}}], tls: {ca: {configMapKeyRef: {name: ca, key: ca.crt}}}},
			probe: {headers: [{name: X-Probe, value: "1"}]}}`),
	}
	server := serverOf(t, "front", `
tools:
  max: 7
  include: ["*"]
  filter: "true"
  conflictPolicy: Newest
  overrides: [{name: o_q, rename: query, description: D, annotations: {readOnlyHint: true}, metadata: {tier: "1"}}]
upstreams:
- {name: o, serverRef: {name: orders}, prefix: o_, protocol: Legacy, include: ["q*"], metadata: {tier: "2"}}
- {name: v, serverRef: {name: vendor}, exclude: ["x"]}
- {name: gone, serverRef: {name: gone}}`)
	c := Build(server, nil, serverconfig.ProbeTrust{})
	c.AddUpstreams(server, ResolveUpstreams(server, func(name string) *mcpv1.MCPServer { return others[name] }, address))
	raw, err := json.Marshal(map[string]any{"u": c.Config.Upstreams, "p": c.Config.Policy, "r": c.Config.Requires})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"p":{"max":7,"overrides":[{"name":"o_q","rename":"query","description":"D","annotations":{"readOnlyHint":true},"metadata":{"tier":"1"}}],"include":["*"],"filter":"true","conflicts":"Newest"},` +
		`"r":["upstreams"],"u":[{"name":"o","url":"http://orders-mcp.ns.svc:8080/mcp","protocol":"Legacy","include":["q*"],"prefix":"o_","metadata":{"tier":"2"}},` +
		`{"name":"v","url":"https://vendor.test/mcp?k=v","headers":[{"name":"Authorization","prefix":"Bearer ","file":"secrets/s/k"}],"tls":{"caFile":"configmaps/ca/ca.crt"},"exclude":["x"]}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	if len(c.Refs) != 2 || c.Refs[0].Name != "ca" || c.Refs[1].Name != "s" {
		t.Errorf("refs %v", c.Refs)
	}
}

func TestNoUpstreamsNoPolicy(t *testing.T) {
	server := serverOf(t, "front", `{tools: {max: 7}}`)
	c := Build(server, nil, serverconfig.ProbeTrust{})
	c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
	if c.Config.Policy != nil || c.Config.Requires != nil {
		t.Errorf("a server without upstreams has another catalog than before: %+v", c.Config)
	}
}

func TestCircles(t *testing.T) {
	all := map[string]*mcpv1.MCPServer{}
	for name, spec := range map[string]string{
		"a": `{upstreams: [{name: x, serverRef: {name: b}}, {name: u, url: "http://a.test"}]}`,
		"b": `{upstreams: [{name: x, serverRef: {name: c}}]}`,
		"c": `{upstreams: [{name: x, serverRef: {name: b}}, {name: y, serverRef: {name: a}}]}`,
		"d": `{upstreams: [{name: x, serverRef: {name: a}}]}`,
	} {
		all[name] = serverOf(t, name, spec)
	}
	lookup := func(name string) *mcpv1.MCPServer { return all[name] }
	for name, want := range map[string]string{"a": mcpv1.ReasonUpstreamCycle, "b": mcpv1.ReasonUpstreamCycle, "c": mcpv1.ReasonUpstreamCycle, "d": ""} {
		if got := ResolveUpstreams(all[name], lookup, address)[0].Verdict.Reason; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestChildInCatalog(t *testing.T) {
	server := serverOf(t, "files", `{type: Stdio, startupTimeoutSeconds: 300, stdio: {image: node, command: [npx, -y], args: [x], workingDir: /w, env: [{name: B, value: b}, {name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}],
		limits: {handshakeTimeoutSeconds: 3}}, workload: {env: [{name: C, value: c}, {name: A, value: a}]}, upstreams: [{name: u, url: "http://u.test"}]}`)
	c := Build(server, nil, serverconfig.ProbeTrust{})
	c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
	raw, err := json.Marshal(map[string]any{"u": c.Config.Upstreams, "r": c.Config.Requires})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"r":["upstreams","stdio"],"u":[{"name":"Stdio","url":"","stdio":{"command":["npx","-y","x"],"workingDir":"/w","env":["A","B","C"],"startupTimeoutSeconds":300,"handshakeTimeoutSeconds":3,"maxMessageBytes":10485760,"maxStderrBytes":65536,"forward":["Elicitation"]}},` +
		`{"name":"u","url":"http://u.test"}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
}

func TestChildPerClientInCatalog(t *testing.T) {
	for spec, want := range map[string]string{
		`{image: node, command: [a], sharing: PerClient}`:                                                                        `{"r":["upstreams","stdio","stdio-per-client"],"u":{"perClient":true,"maxProcesses":20,"idleSeconds":300,"forward":["Elicitation"]}}`,
		`{image: node, command: [a], sharing: PerClient, forward: [Sampling, Roots], limits: {maxProcesses: 3, idleSeconds: 4}}`: `{"r":["upstreams","stdio","stdio-per-client"],"u":{"perClient":true,"maxProcesses":3,"idleSeconds":4,"forward":["Roots","Sampling"]}}`,
		`{image: node, command: [a], sharing: Shared}`:                                                                           `{"r":["upstreams","stdio"],"u":{"forward":["Elicitation"]}}`,
	} {
		server := serverOf(t, "files", `{type: Stdio, stdio: `+spec+`}`)
		c := Build(server, nil, serverconfig.ProbeTrust{})
		c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
		child := c.Config.Upstreams[0].Stdio
		child.Command, child.StartupTimeoutSeconds, child.HandshakeTimeoutSeconds, child.MaxMessageBytes, child.MaxStderrBytes = nil, 0, 0, 0, 0
		raw, err := json.Marshal(map[string]any{"u": child, "r": c.Config.Requires})
		if err != nil {
			t.Fatal(err)
		}
		got := strings.NewReplacer(`"command":null,"startupTimeoutSeconds":0,"handshakeTimeoutSeconds":0,"maxMessageBytes":0,"maxStderrBytes":0,`, "").Replace(string(raw))
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", spec, got, want)
		}
	}
}

// TestReservedAreTools: what hides two resources or prompts hides no tool of an
// upstream.
func TestReservedAreTools(t *testing.T) {
	server := serverOf(t, "front", `{tools: {conflictPolicy: HideAll}, upstreams: [{name: u, url: "http://u.test"}]}`)
	var compiled []*Compiled
	for _, name := range []string{"a", "b"} {
		for kind, spec := range map[Kind]string{
			KindTool:     `{name: twin, expression: {text: "'x'"}}`,
			KindResource: `{uri: "docs://twin", text: x}`,
			KindPrompt:   `{name: twins, messages: [{role: User, content: {type: Text, text: x}}]}`,
		} {
			compiled = append(compiled, Compile(registration(t, kind, name, 0, spec)))
		}
	}
	c := Build(server, compiled, serverconfig.ProbeTrust{})
	c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
	if len(c.Served) != 0 {
		t.Errorf("%d are served", len(c.Served))
	}
	if got := c.Config.Policy.Reserved; !slices.Equal(got, []string{"twin"}) {
		t.Errorf("reserved %q", got)
	}
}

// TestChoosyUpstreams: what chooses callers, a tool that an upstream answers and
// the tool that reads resources are nothing that an older server may ignore.
func TestChoosyUpstreams(t *testing.T) {
	server := serverOf(t, "front", `{tools: {retrieve: true}, upstreams: [{name: u, url: "http://u.test", when: "principal.kind == 'JWT'"}]}`)
	tool := Compile(registration(t, KindTool, "q", 0, `{upstream: {name: u, tool: raw}}`))
	c := Build(server, []*Compiled{tool}, serverconfig.ProbeTrust{})
	upstreams := ResolveUpstreams(server, nil, address)
	c.AddUpstreams(server, upstreams)
	want := []string{serverconfig.FeatureRetrieve, serverconfig.FeatureUpstreamHandler, serverconfig.FeatureUpstreams, serverconfig.FeatureUpstreamsWhen}
	if !slices.Equal(c.Config.Requires, want) || !c.Server.Accepted {
		t.Errorf("requires %q, %s", c.Config.Requires, c.Server.Message)
	}
	for _, feature := range want {
		if !slices.Contains(serverconfig.Features, feature) {
			t.Errorf("this server lacks %s", feature)
		}
	}
	if u := c.Config.Upstreams[0]; u.When != "principal.kind == 'JWT'" || !c.Config.Retrieve {
		t.Errorf("config %+v", c.Config)
	}
	if got := c.Config.Tools[0].Upstream; got == nil || *got != (serverconfig.UpstreamTool{Upstream: "u", Tool: "raw"}) {
		t.Errorf("handler %+v", got)
	}
	if v := UpstreamOf(tool, "front", upstreams); !v.Accepted {
		t.Error(v.Message)
	}
	if v := UpstreamOf(tool, "front", nil); v.Accepted || v.Reason != mcpv1.ReasonUpstreamNotFound {
		t.Errorf("%+v", v)
	}
	for _, when := range []string{"principal.", "tool.name == 'x'", "1"} {
		server.Spec.Upstreams[0].When = when
		c := Build(server, nil, serverconfig.ProbeTrust{})
		c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
		if c.Server.Accepted || c.Server.Reason != mcpv1.ReasonInvalidUpstream || !strings.Contains(c.Server.Message, "spec.upstreams[0].when") || len(c.Config.Upstreams) != 1 {
			t.Errorf("%s: %+v", when, c.Server)
		}
	}
}

// TestOpenAPIInCatalog: the pods read the document, from a URL or a mounted key.
func TestOpenAPIInCatalog(t *testing.T) {
	server := serverOf(t, "front", `
upstreams:
- name: a
  prefix: a_
  openAPI:
    document: {configMapKeyRef: {name: docs, key: a.yaml}}
    url: https://api.test/v1
    headers: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: s, key: k}}]
    tls: {ca: {configMapKeyRef: {name: ca, key: ca.crt}}}
- {name: b, openAPI: {document: {url: "https://b.test/openapi.json"}}}`)
	c := Build(server, nil, serverconfig.ProbeTrust{})
	c.AddUpstreams(server, ResolveUpstreams(server, nil, address))
	raw, err := json.Marshal(map[string]any{"u": c.Config.Upstreams, "r": c.Config.Requires})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"r":["upstreams","openapi"],"u":[{"name":"a","url":"https://api.test/v1","headers":[{"name":"Authorization","prefix":"Bearer ","file":"secrets/s/k"}],"tls":{"caFile":"configmaps/ca/ca.crt"},` +
		`"openAPI":{"documentFile":"configmaps/docs/a.yaml"},"prefix":"a_"},{"name":"b","url":"","openAPI":{"documentURL":"https://b.test/openapi.json"}}]}`
	if string(raw) != want {
		t.Errorf("got  %s\nwant %s", raw, want)
	}
	if len(c.Refs) != 3 || c.Refs[0].Name != "ca" || c.Refs[1].Name != "docs" || c.Refs[2].Name != "s" {
		t.Errorf("refs %v", c.Refs)
	}
}
