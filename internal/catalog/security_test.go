// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func secured(t *testing.T, spec string) *Catalog {
	t.Helper()
	server := &mcpv1.MCPServer{}
	server.Name, server.Namespace = "web", "team-a"
	if err := yaml.UnmarshalStrict([]byte(spec), &server.Spec); err != nil {
		t.Fatal(err)
	}
	return Build(server, nil, serverconfig.ProbeTrust{})
}

const someKeys = `{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}`

// TestSecure: the whole spec, in the words of the config.
func TestSecure(t *testing.T) {
	c := secured(t, `
publicURL: https://mcp.example.com/agents
auth:
  jwt:
    issuer: https://login.example.com
    audiences: [mcp]
    requiredScopes: [read]
    jwksURI: https://login.example.com/keys
    tls:
      serverName: login
      ca: {configMapKeyRef: {name: ca, key: ca.crt}}
      clientCertificateRef: {name: client}
  serviceAccounts: {audiences: [mcp], subjects: ["system:serviceaccount:team-a:*"]}
  apiKeys: {secretRef: {name: clients}}
access:
- {tools: ["billing_*"], when: "'finance' in principal.claims.groups"}
- {resources: ["docs://*"], prompts: [review], when: "'staff' in principal.scopes"}
accessDefault: Deny
limits:
  budget: {calls: 1000, windowSeconds: 3600}
  rules:
  - {tools: ["billing_*"], when: "tool.metadata.tier == 'gold'", requestsPerSecond: 5, budget: {calls: 10, windowSeconds: 60}}
extensions: {com.example/notes: {version: "1"}, io.modelcontextprotocol/ui: {}}
`)
	if !c.Server.Accepted {
		t.Fatal(c.Server.Message)
	}
	c.Surround(Surroundings{URL: "http://web-mcp.team-a.svc:8080/mcp", Issuer: "https://k", JWKS: json.RawMessage(someKeys)})
	want := &serverconfig.Auth{
		Resource: "https://mcp.example.com/agents",
		JWT: &serverconfig.JWT{
			Issuer: "https://login.example.com", Audiences: []string{"mcp"}, JWKSURI: "https://login.example.com/keys", RequiredScopes: []string{"read"},
			TLS: &serverconfig.TLS{ServerName: "login", CAFile: "configmaps/ca/ca.crt", CertFile: "secrets/client/tls.crt", KeyFile: "secrets/client/tls.key"},
		},
		ServiceAccounts: &serverconfig.ServiceAccounts{
			Issuer: "https://k", JWKS: json.RawMessage(someKeys), Audiences: []string{"mcp"}, Subjects: []string{"system:serviceaccount:team-a:*"},
		},
		APIKeys: &serverconfig.APIKeys{Secret: "clients"},
	}
	if diff := cmp.Diff(want, c.Config.Auth); diff != "" {
		t.Errorf("auth (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&serverconfig.Access{DenyByDefault: true, Rules: []serverconfig.AccessRule{
		{Tools: []string{"billing_*"}, When: "'finance' in principal.claims.groups"},
		{Resources: []string{"docs://*"}, Prompts: []string{"review"}, When: "'staff' in principal.scopes"},
	}}, c.Config.Access); diff != "" {
		t.Errorf("access (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]serverconfig.LimitRule{{
		Tools: []string{"billing_*"}, When: "tool.metadata.tier == 'gold'", RequestsPerSecond: 5, Budget: &serverconfig.Budget{Calls: 10, WindowSeconds: 60},
	}}, c.Config.Limits.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if c.Config.Limits.Budget.Calls != 1000 || len(c.Config.Extensions) != 2 || c.Config.Extensions[0].Name != "com.example/notes" {
		t.Errorf("%+v, %v", c.Config.Limits.Budget, c.Config.Extensions)
	}
	if diff := cmp.Diff([]string{"auth", "access", "limits.rules"}, c.Config.Requires); diff != "" {
		t.Errorf("requires (-want +got):\n%s", diff)
	}
	if missing := c.Config.Missing(); missing != nil {
		t.Errorf("this build lacks %v", missing)
	}
	if diff := cmp.Diff([]Ref{
		{Kind: RefConfigMap, Name: "ca", Key: "ca.crt"}, {Kind: RefSecret, Name: "client", Key: "tls.crt"},
		{Kind: RefSecret, Name: "client", Key: "tls.key"}, {Kind: RefSecret, Name: "clients"},
	}, c.Refs); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
}

// TestNothingToSecure: a server without these needs no feature, so that older
// images serve it.
func TestNothingToSecure(t *testing.T) {
	for _, spec := range []string{`{}`, `accessDefault: Allow`, `extensions: {com.example/a: {}}`, `limits: {requestsPerSecond: 5}`} {
		c := secured(t, spec)
		if c.Config.Requires != nil || c.Config.Auth != nil || c.Config.Access != nil || !c.Server.Accepted {
			t.Errorf("%s: %+v", spec, c.Config)
		}
		c.Surround(Surroundings{URL: "http://web"})
	}
}

func TestResourceDefault(t *testing.T) {
	c := secured(t, `auth: {jwt: {issuer: "https://a", audiences: [b]}}`)
	c.Surround(Surroundings{URL: "http://web-mcp.team-a.svc:8080/mcp"})
	if c.Config.Auth.Resource != "http://web-mcp.team-a.svc:8080/mcp" {
		t.Error(c.Config.Auth.Resource)
	}
}

// TestUnsound: what cannot be used is refused in words, and what is left in
// the config is on the safe side.
func TestUnsound(t *testing.T) {
	tests := map[string]struct {
		spec, reason, words string
		safe                func(*serverconfig.Config) bool
	}{
		"keys that are none": {
			`auth: {jwt: {issuer: "https://a", audiences: [b], jwks: "hello"}}`, mcpv1.ReasonInvalidAuth, "spec.auth.jwt.jwks",
			func(c *serverconfig.Config) bool { return string(c.Auth.JWT.JWKS) == `{"keys":[]}` },
		},
		"a secret as a key": {
			`auth: {jwt: {issuer: "https://a", audiences: [b], jwks: '{"keys":[{"kty":"oct","k":"AAAA"}]}'}}`, mcpv1.ReasonInvalidAuth, "no public key",
			func(c *serverconfig.Config) bool { return string(c.Auth.JWT.JWKS) == `{"keys":[]}` },
		},
		"an access rule": {
			`access: [{when: "true"}, {when: "principal.nickname == 'a'"}]`, mcpv1.ReasonInvalidAccess, `spec.access[1].when: 1:10: principal has no field "nickname"`,
			func(c *serverconfig.Config) bool { return len(c.Access.Rules) == 2 },
		},
		"an access rule over args": {
			`access: [{when: "args.x == 1"}]`, mcpv1.ReasonInvalidAccess, "args", func(c *serverconfig.Config) bool { return len(c.Access.Rules) == 1 },
		},
		"a rule that gives a text": {
			`access: [{when: "'yes'"}]`, mcpv1.ReasonInvalidAccess, "wanted is a boolean", func(c *serverconfig.Config) bool { return len(c.Access.Rules) == 1 },
		},
		"a limit rule": {
			`limits: {rules: [{when: "nothing", requestsPerSecond: 1}]}`, mcpv1.ReasonInvalidLimits, "spec.limits.rules[0].when",
			func(c *serverconfig.Config) bool { return len(c.Limits.Rules) == 1 },
		},
		"an extension's name":   {`extensions: {notes: {}, com.example/a: {}}`, mcpv1.ReasonInvalidExtensions, `"notes"`, oneExtension},
		"an extension's value":  {`extensions: {com.example/a: {}, com.example/b: "x"}`, mcpv1.ReasonInvalidExtensions, "no object", oneExtension},
		"the specification's":   {`extensions: {com.example/a: {}, io.modelcontextprotocol/tasks: {}}`, mcpv1.ReasonInvalidExtensions, "pretend", oneExtension},
		"a large one":           {`extensions: {com.example/a: {}, com.example/b: {x: "` + strings.Repeat("x", maxExtensionBytes) + `"}}`, mcpv1.ReasonInvalidExtensions, "bytes", oneExtension},
		"a long name":           {`extensions: {com.example/a: {}, com.example/` + strings.Repeat("x", 256) + `: {}}`, mcpv1.ReasonInvalidExtensions, "a name is", oneExtension},
		"filter and access too": {`{tools: {filter: "nope"}, access: [{when: "nope"}]}`, mcpv1.ReasonInvalidAccess, "spec.access[0]", func(c *serverconfig.Config) bool { return c.Tools == nil }},
	}
	for name, test := range tests {
		c := secured(t, test.spec)
		if c.Server.Accepted || c.Server.Reason != test.reason || !strings.Contains(c.Server.Message, test.words) {
			t.Errorf("%s: %+v", name, c.Server)
		}
		if !test.safe(c.Config) {
			t.Errorf("%s: the config is open", name)
		}
	}
}

func oneExtension(c *serverconfig.Config) bool {
	return len(c.Extensions) == 1 && c.Extensions[0].Name == "com.example/a"
}

func TestManyExtensions(t *testing.T) {
	all := map[string]any{}
	for i := range maxExtensions + 1 {
		all[fmt.Sprintf("com.example/n%d", i)] = map[string]any{}
	}
	raw, err := json.Marshal(map[string]any{"extensions": all})
	if err != nil {
		t.Fatal(err)
	}
	if c := secured(t, string(raw)); len(c.Config.Extensions) != maxExtensions || c.Server.Reason != mcpv1.ReasonInvalidExtensions {
		t.Errorf("%d, %+v", len(c.Config.Extensions), c.Server)
	}
}

func TestProvesItself(t *testing.T) {
	for spec, want := range map[string]bool{
		`{}`: false, `accessDefault: Allow`: false, `accessDefault: Deny`: true, `access: [{when: "true"}]`: true,
		`auth: {apiKeys: {secretRef: {name: a}}}`: true, `limits: {budget: {calls: 1, windowSeconds: 1}}`: false,
	} {
		server := &mcpv1.MCPServer{}
		if err := yaml.UnmarshalStrict([]byte(spec), &server.Spec); err != nil {
			t.Fatal(err)
		}
		if got := ProvesItself(server); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}
