// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/oauth/oauthtest"
)

func request(s *oauthtest.Server) *oauth.Request {
	return &oauth.Request{TokenURL: s.TokenURL(), ClientID: oauthtest.ClientID, Secret: oauthtest.Secret}
}

func TestClientCredentials(t *testing.T) {
	s := oauthtest.New(t, false)
	r := request(s)
	r.Scopes, r.Audience, r.Resource = []string{"a", "b"}, "aud", "https://api.example.com"
	token, err := new(oauth.Fetcher).Fetch(t.Context(), s.Client(), r)
	if err != nil {
		t.Fatal(err)
	}
	if token.Value != "token-1" || time.Until(token.Expires).Round(time.Minute) != time.Hour {
		t.Errorf("got %+v", token)
	}
	form := s.Forms()[0]
	for name, want := range map[string]string{
		"grant_type": "client_credentials", "scope": "a b", "audience": "aud", "resource": "https://api.example.com",
		"subject_token": "", "client_secret": "",
	} {
		if got := form.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	s.Lasting(0)
	if token, err = new(oauth.Fetcher).Fetch(t.Context(), s.Client(), r); err != nil || !token.Expires.IsZero() {
		t.Errorf("without expires_in: %+v, %v", token, err)
	}
}

func TestExchange(t *testing.T) {
	s := oauthtest.New(t, false)
	r := request(s)
	r.Subject, r.SubjectType = "alice", oauth.TypeJWT
	token, err := new(oauth.Fetcher).Fetch(t.Context(), s.Client(), r)
	if err != nil || token.Value != "token-1-of-alice" {
		t.Fatalf("got %+v, %v", token, err)
	}
	form := s.Forms()[0]
	for name, want := range map[string]string{
		"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": "alice",
		"subject_token_type": oauth.TypeJWT, "requested_token_type": oauth.TypeAccessToken,
	} {
		if got := form.Get(name); got != want || len(form[name]) != 1 {
			t.Errorf("%s is %q, want %q", name, form[name], want)
		}
	}
}

// TestSecretInBody: where Basic is refused the body is tried, once for all.
func TestSecretInBody(t *testing.T) {
	s := oauthtest.New(t, false)
	s.WantBody()
	var f oauth.Fetcher
	for range 2 {
		if _, err := f.Fetch(t.Context(), s.Client(), request(s)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.Forms()); n != 3 {
		t.Errorf("%d requests, want 3", n)
	}
}

// TestFailures: each is told apart, and none holds a word of the endpoint's or
// a secret.
func TestFailures(t *testing.T) {
	says := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	const jsonType = "application/json"
	for name, test := range map[string]struct {
		answer  http.HandlerFunc
		status  int
		code    string
		refused bool
	}{
		"a code":              {says(400, jsonType, `{"error":"invalid_scope","error_description":"leak"}`), 400, "invalid_scope", true},
		"a code of its own":   {says(400, jsonType, `{"error":"leak"}`), 400, "", true},
		"an error with 200":   {says(200, jsonType, `{"error":"leak"}`), 400, "", true},
		"500":                 {says(500, "text/html", "leak"), 500, "", false},
		"no JSON":             {says(200, jsonType, "leak"), 200, "", false},
		"no token":            {says(200, jsonType, `{"leak":1}`), 200, "", false},
		"another type":        {says(200, jsonType, `{"access_token":"leak","token_type":"mac"}`), 200, "", false},
		"a token that breaks": {says(200, jsonType, `{"access_token":"leak\r\nx: y","token_type":"Bearer"}`), 200, "", false},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/token?leak", http.StatusTemporaryRedirect)
		}, 307, "", false},
	} {
		s := oauthtest.New(t, false)
		s.Fail(test.answer)
		_, err := new(oauth.Fetcher).Fetch(t.Context(), s.Client(), request(s))
		var failure *oauth.Error
		if !errors.As(err, &failure) || failure.Status != test.status || failure.Code != test.code || failure.Refused() != test.refused {
			t.Errorf("%s: %#v", name, err)
			continue
		}
		if strings.Contains(err.Error(), "leak") || strings.Contains(err.Error(), oauthtest.Secret) {
			t.Errorf("%s: %s", name, err)
		}
		if name == "a redirect" && len(s.Forms()) != 1 {
			t.Error("the redirect was followed")
		}
	}
	s := oauthtest.New(t, false)
	r := request(s)
	s.Close()
	_, err := new(oauth.Fetcher).Fetch(t.Context(), s.Client(), r)
	if failure := new(oauth.Error); !errors.As(err, &failure) || failure.Err == nil || failure.Refused() || strings.Contains(err.Error(), "/token") {
		t.Errorf("a dead endpoint: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(oauth.Fetcher).Fetch(gone, s.Client(), r); !errors.Is(err, context.Canceled) {
		t.Errorf("after the caller left: %v", err)
	}
}
