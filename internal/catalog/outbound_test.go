// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	someClient = `{tokenURL: "https://idp.test/token", clientID: c, clientSecretRef: {name: idp, key: secret}, scopes: [a], audience: b, resource: "urn:c"}`
	jwtAuth    = `auth: {jwt: {issuer: "https://login.example.com", audiences: [mcp]}}`
)

// TestOutboundInCatalog: what pods are told of the tokens of connections, and
// which Secrets they mount for it.
func TestOutboundInCatalog(t *testing.T) {
	own := tool(t, "own", `{http: {method: GET, url: "https://api.test/", auth: {oauthClientCredentials: `+someClient+`}}}`)
	theirs := tool(t, "theirs", `{http: {method: GET, url: "https://API.test/x/{a}", tls: {ca: {configMapKeyRef: {name: ca, key: ca.crt}}},
		auth: {oauthClientCredentials: {tokenURL: "https://api.test:443/token", clientID: c, clientSecretRef: {name: idp, key: secret}, scopes: [a]}, oauthTokenExchange: {subjectTokenType: JWT, audience: z}}},
		inputSchema: {type: object, properties: {a: {type: string}}}}`)
	c := build(server(t, `{`+jwtAuth+`}`), own, theirs)
	for id, v := range c.Verdicts {
		if !v.Accepted {
			t.Fatalf("%s: %s", id.Name, v.Message)
		}
	}
	client := serverconfig.OAuthClient{TokenURL: "https://idp.test/token", ClientID: "c", SecretFile: "secrets/idp/secret", Scopes: []string{"a"}, Audience: "b", Resource: "urn:c"}
	if diff := cmp.Diff(&serverconfig.OutboundAuth{ClientCredentials: &client}, c.Config.Tools[0].HTTP.Auth); diff != "" {
		t.Errorf("client credentials (-want +got):\n%s", diff)
	}
	exchange := &serverconfig.TokenExchange{SubjectType: "urn:ietf:params:oauth:token-type:jwt", OAuthClient: serverconfig.OAuthClient{
		// One origin with the connection: its TLS is the token endpoint's too.
		TokenURL: "https://api.test:443/token", ClientID: "c", SecretFile: "secrets/idp/secret", Audience: "z", TLS: &serverconfig.TLS{CAFile: "configmaps/ca/ca.crt"},
	}}
	same := exchange.OAuthClient
	same.Scopes, same.Audience = []string{"a"}, ""
	if diff := cmp.Diff(&serverconfig.OutboundAuth{ClientCredentials: &same, Exchange: exchange}, c.Config.Tools[1].HTTP.Auth); diff != "" {
		t.Errorf("exchange (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Ref{{Kind: RefConfigMap, Name: "ca", Key: "ca.crt"}, {Kind: RefSecret, Name: "idp", Key: "secret"}}, c.Refs); diff != "" {
		t.Errorf("refs (-want +got):\n%s", diff)
	}
	if !slices.Contains(c.Config.Requires, serverconfig.FeatureConnectionAuth) || c.Config.Missing() != nil {
		t.Errorf("requires %v, missing %v", c.Config.Requires, c.Config.Missing())
	}
	if plain := build(server(t, `{}`), tool(t, "plain", `{http: {method: GET, url: "https://api.test/"}}`)); plain.Config.Requires != nil {
		t.Errorf("without auth the catalog requires %v", plain.Config.Requires)
	}
}

// TestExchangeNeedsCallers: where callers show no token that could be
// exchanged, what exchanges them is not served.
func TestExchangeNeedsCallers(t *testing.T) {
	exchanging := tool(t, "theirs", `{http: {method: GET, url: "https://api.test/", auth: {oauthClientCredentials: `+someClient+`, oauthTokenExchange: {subjectTokenType: AccessToken}}}}`)
	for spec, want := range map[string]bool{
		`{}`: false, `{auth: {apiKeys: {secretRef: {name: a}}}}`: false,
		`{` + jwtAuth + `}`: true, `{auth: {serviceAccounts: {audiences: [a]}}}`: true,
	} {
		v := build(server(t, spec), exchanging, tool(t, "plain", `{}`)).Verdicts[toolID("theirs")]
		if v.Accepted != want || !want && (v.Reason != mcpv1.ReasonInvalidAuth || !strings.Contains(v.Message, "have none")) {
			t.Errorf("%s: %+v", spec, v)
		}
		front := serverOf(t, "front", spec)
		front.Spec.Upstreams = serverOf(t, "x", `{upstreams: [{name: v, serverRef: {name: vendor}}]}`).Spec.Upstreams
		vendor := serverOf(t, "vendor", `{type: External, external: {url: "https://vendor.test/mcp", auth: {oauthClientCredentials: `+someClient+`, oauthTokenExchange: {subjectTokenType: AccessToken}}}}`)
		u := ResolveUpstreams(front, func(string) *mcpv1.MCPServer { return vendor }, address)[0]
		if u.Verdict.Accepted != want || !want && u.Verdict.Reason != mcpv1.ReasonInvalidAuth {
			t.Errorf("%s: upstream %+v", spec, u.Verdict)
		}
		if want {
			raw, err := json.Marshal(u.Config.Auth)
			if err != nil || !strings.Contains(string(raw), `"clientCredentials":{`) || !strings.Contains(string(raw), `"subjectType":"urn:ietf:params:oauth:token-type:access_token"`) {
				t.Errorf("the upstream inherits %s", raw)
			}
		}
	}
}

// TestTokenTLS: elsewhere than at the connection's own origin its authorities
// are trusted beside the system's, and its certificate is not shown.
func TestTokenTLS(t *testing.T) {
	for tls, want := range map[string]*serverconfig.TLS{
		`{ca: {configMapKeyRef: {name: ca, key: k}}, serverName: a, clientCertificateRef: {name: client}}`: {CAFile: "configmaps/ca/k", System: true},
		`{serverName: a, clientCertificateRef: {name: client}}`:                                            nil,
	} {
		c := build(server(t, `{}`), tool(t, "a", `{http: {method: GET, url: "https://api.test/", tls: `+tls+`, auth: {oauthClientCredentials: `+someClient+`}}}`))
		if diff := cmp.Diff(want, c.Config.Tools[0].HTTP.Auth.ClientCredentials.TLS); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tls, diff)
		}
	}
}

func TestOrigin(t *testing.T) {
	for url, want := range map[string]string{
		"https://a/b": "https://a:443", "HTTP://A.b": "http://a.b:80", "https://a:8443?x": "https://a:8443",
		"http://[fd00::1]/": "http://[fd00::1]:80", "http://[fd00::1]:81": "http://[fd00::1]:81", "https://a:443/": "https://a:443",
	} {
		if got := origin(url); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
