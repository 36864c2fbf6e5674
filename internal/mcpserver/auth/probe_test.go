// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestProbe: the operator's own token is known with and without auth; where
// there is none, everything else is nobody's.
func TestProbe(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	clock := &testClock{}
	signer, err := mcpprobe.NewTokenSigner(private, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	own, err := signer.Token("team-a/web")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := signer.Token("team-b/web")
	if err != nil {
		t.Fatal(err)
	}
	trust := serverconfig.ProbeTrust{Audience: "team-a/web", Keys: []string{"not a key", base64.StdEncoding.EncodeToString(public)}}
	k := keeper(t, clock, t.TempDir())
	wanting := k.Build(&serverconfig.Config{Probe: trust, Auth: &serverconfig.Auth{APIKeys: &serverconfig.APIKeys{Secret: "keys"}}})
	open := k.Build(&serverconfig.Config{Probe: trust})
	if got := outcome(wanting.Authenticate(bearer(own))); got != string(principal.Probe)+" " {
		t.Errorf("with auth: %s", got)
	}
	if got := outcome(open.Authenticate(bearer(own))); got != string(principal.Probe)+" " {
		t.Errorf("without auth: %s", got)
	}
	if got := outcome(wanting.Authenticate(bearer(foreign))); got != ReasonInvalidToken {
		t.Errorf("another server's, with auth: %s", got)
	}
	for _, token := range []string{foreign, "hello", ""} {
		if got := outcome(open.Authenticate(bearer(token))); got != "Anonymous " {
			t.Errorf("%q without auth: %s", token, got)
		}
	}
	clock.forward(5 * time.Minute)
	if got := outcome(wanting.Authenticate(bearer(own))); got != ReasonInvalidToken {
		t.Errorf("expired: %s", got)
	}
}

func TestMetadata(t *testing.T) {
	config := &serverconfig.Config{Auth: &serverconfig.Auth{
		Resource: "https://mcp.example.com/agents", JWT: &serverconfig.JWT{Issuer: "https://login.example.com", JWKS: json.RawMessage("{}"), RequiredScopes: []string{"read"}},
	}}
	a := keeper(t, &testClock{}, "").Build(config)
	want := `{"resource":"https://mcp.example.com/agents","authorization_servers":["https://login.example.com"],` +
		`"scopes_supported":["read"],"bearer_methods_supported":["header"],"resource_name":"Agents"}`
	for path, found := range map[string]bool{
		WellKnown: true, WellKnown + "/": true, WellKnown + "/agents": true, WellKnown + "/mcp": true,
		WellKnown + "/other": false, WellKnown + "x": false, "/mcp": false,
	} {
		got := string(a.Metadata(path, "Agents", []string{"/mcp"}))
		if found && got != want || !found && got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
	for resource, address := range map[string]string{
		"https://mcp.example.com":               "https://mcp.example.com" + WellKnown,
		"https://mcp.example.com/":              "https://mcp.example.com" + WellKnown,
		"http://web-mcp.team-a.svc:8080/mcp":    "http://web-mcp.team-a.svc:8080" + WellKnown + "/mcp",
		"https://mcp.example.com/a%20b/%22c%22": "https://mcp.example.com" + WellKnown + "/a%20b/%22c%22",
		"":                                      "", "::": "",
	} {
		config.Auth.Resource = resource
		if got := a.MetadataURL(); got != address {
			t.Errorf("%q: %s, want %s", resource, got, address)
		}
	}
	// Without an issuer there is nobody to ask for a token.
	keys := keeper(t, &testClock{}, "").Build(&serverconfig.Config{Auth: &serverconfig.Auth{Resource: "https://a", APIKeys: &serverconfig.APIKeys{Secret: "k"}}})
	if keys.Metadata(WellKnown, "", nil) != nil {
		t.Error("metadata without an issuer")
	}
	if _, refusal := keys.Authenticate(httptest.NewRequest(http.MethodGet, "/", nil)); refusal.Challenge != "Bearer" {
		t.Errorf("challenge %q", refusal.Challenge)
	}
}
