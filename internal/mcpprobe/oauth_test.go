// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/oauth/oauthtest"
)

// tokened is a server that lets those in who show a token of s, and a target
// with a client of s. Probes share one Client, which keeps tokens.
func tokened(t *testing.T, s *oauthtest.Server) (probe func() mcpprobe.Report, target *mcpprobe.Target) {
	t.Helper()
	b := newBench(t, fakemcp.New())
	b.http.Config.Handler = s.Guard(b.fake)
	c := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}, Version: "test"})
	t.Cleanup(c.Close)
	b.target.OAuth = &mcpprobe.OAuth{TokenURL: s.TokenURL(), ClientID: oauthtest.ClientID, Secret: oauthtest.Secret, Scopes: []string{"list"}}
	return func() mcpprobe.Report { return c.Probe(t.Context(), b.target) }, &b.target
}

// A probe shows a token of its client. It asks for one when it has none, and
// anew when it is refused.
func TestOAuth(t *testing.T) {
	s := oauthtest.New(t, false)
	probe, _ := tokened(t, s)
	for range 3 {
		wantResult(t, probe(), proved)
	}
	if forms := s.Forms(); len(forms) != 1 || forms[0].Get("scope") != "list" || forms[0].Get("grant_type") != "client_credentials" {
		t.Errorf("asked for %v", forms)
	}
	s.Revoke()
	wantResult(t, probe(), proved)
	if n := len(s.Forms()); n != 2 {
		t.Errorf("%d requests for tokens", n)
	}
	// A server that refuses a fresh token is asked once.
	probe, target := tokened(t, oauthtest.New(t, false))
	target.OAuth.TokenURL = s.TokenURL()
	wantResult(t, probe(), failed(mcpprobe.AuthRejected, mcpprobe.StepInitialize))
	if n := len(s.Forms()); n != 3 {
		t.Errorf("%d requests for tokens", n)
	}
	target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer other", Credential: true}}
	wantResult(t, probe(), failed(mcpprobe.AuthRejected, mcpprobe.StepInitialize))
	if n := len(s.Forms()); n != 3 {
		t.Error("a token was asked for although the headers have one")
	}
}

// A rotated secret is used at once, a wrong one is told apart from a server
// that refuses, and nothing of either reaches the report.
func TestOAuthFails(t *testing.T) {
	s := oauthtest.New(t, false)
	probe, target := tokened(t, s)
	wantResult(t, probe(), proved)
	s.Rotate("another secret")
	target.OAuth.Secret = "a wrong secret"
	r := probe()
	refused := func(r mcpprobe.Report, status int) {
		t.Helper()
		wantResult(t, r, failed(mcpprobe.TokenFailed, mcpprobe.StepToken))
		if r.HTTPStatus != status {
			t.Errorf("status %d, want %d", r.HTTPStatus, status)
		}
	}
	refused(r, http.StatusUnauthorized)
	if r.Outcome.Connected(r.Step) || r.Outcome.Answered() {
		t.Error("the server was not asked")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw) + mcpprobe.Message(&r, mcpprobe.Where{External: true})
	if strings.Contains(text, "secret") || strings.Contains(text, "who are you") {
		t.Errorf("the report says %s", text)
	}
	if !strings.Contains(text, "authorization server gave no token (HTTP 401)") {
		t.Errorf("the message says %s", text)
	}
	target.OAuth.Secret = "another secret"
	wantResult(t, probe(), proved)

	target.OAuth.Secret = "one more"
	s.Fail(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
	})
	refused(probe(), http.StatusTemporaryRedirect)
	s.Close()
	refused(probe(), 0)
	target.OAuth.TokenURL = "http://169.254.169.254/token"
	wantResult(t, probe(), failed(mcpprobe.ProbeDenied, mcpprobe.StepToken))
}

// The token endpoint has TLS of its own.
func TestOAuthTLS(t *testing.T) {
	s := oauthtest.New(t, true)
	probe, target := tokened(t, s)
	wantResult(t, probe(), failed(mcpprobe.TokenFailed, mcpprobe.StepToken))
	target.OAuth.TLS.CAPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	wantResult(t, probe(), proved)
	s.Revoke()
	target.OAuth.TLS.System = true
	wantResult(t, probe(), proved)
}
