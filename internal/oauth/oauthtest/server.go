// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauthtest is a small authorization server for tests: it gives tokens
// to one client, for itself and in exchange, and knows which it gave.
package oauthtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// Client that the server knows, until Rotate.
const (
	ClientID = "espalier"
	Secret   = "s3cret & more"
)

// Server gives tokens that read "token-N", or "token-N-of-SUBJECT" in exchange.
type Server struct {
	*httptest.Server

	mu      sync.Mutex
	secret  string
	inBody  bool
	lasting int
	failing http.HandlerFunc
	forms   []url.Values
	valid   map[string]bool
}

// New starts a server for the time of a test, over TLS or not.
func New(t testing.TB, tls bool) *Server {
	s := &Server{secret: Secret, lasting: 3600, valid: map[string]bool{}}
	start := httptest.NewServer
	if tls {
		start = httptest.NewTLSServer
	}
	s.Server = start(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// TokenURL is the endpoint.
func (s *Server) TokenURL() string { return s.URL + "/token" }

// Rotate changes the client's secret.
func (s *Server) Rotate(secret string) { s.change(func() { s.secret = secret }) }

// WantBody makes the server take the secret in the body alone.
func (s *Server) WantBody() { s.change(func() { s.inBody = true }) }

// Lasting sets how many seconds tokens last; 0 does not say.
func (s *Server) Lasting(seconds int) { s.change(func() { s.lasting = seconds }) }

// Fail answers by f; nil gives tokens again.
func (s *Server) Fail(f http.HandlerFunc) { s.change(func() { s.failing = f }) }

// Revoke makes all tokens invalid that were given so far.
func (s *Server) Revoke() { s.change(func() { s.valid = map[string]bool{} }) }

func (s *Server) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Forms are the requests so far.
func (s *Server) Forms() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]url.Values(nil), s.forms...)
}

// Subject of the valid token that r shows: "client", or what was exchanged; ok
// is false without one.
func (s *Server) Subject(r *http.Request) (subject string, ok bool) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if !bearer || !s.valid[token] {
		return "", false
	}
	if _, of, exchanged := strings.Cut(token, "-of-"); exchanged {
		return of, true
	}
	return "client", true
}

// Guard lets those through who show a valid token.
func (s *Server) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := s.Subject(r); !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.ParseForm(); err != nil || r.Method != http.MethodPost || r.URL.Path != "/token" {
		http.NotFound(w, r)
		return
	}
	s.forms = append(s.forms, r.PostForm)
	if s.failing != nil {
		s.failing(w, r)
		return
	}
	if !s.knows(r) {
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client", "error_description": "who are you, " + r.PostForm.Get("client_secret")})
		return
	}
	token := fmt.Sprintf("token-%d", len(s.forms))
	switch r.PostForm.Get("grant_type") {
	case "client_credentials":
	case "urn:ietf:params:oauth:grant-type:token-exchange":
		subject := r.PostForm.Get("subject_token")
		if subject == "" || r.PostForm.Get("subject_token_type") == "" {
			answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_request"})
			return
		}
		token += "-of-" + nameOf(subject)
	default:
		answer(w, http.StatusBadRequest, map[string]any{"error": "unsupported_grant_type"})
		return
	}
	s.valid[token] = true
	out := map[string]any{"access_token": token, "token_type": "Bearer"}
	if s.lasting > 0 {
		out["expires_in"] = s.lasting
	}
	answer(w, http.StatusOK, out)
}

// nameOf is the subject of a JSON Web Token, whose signature is not looked at;
// any other token is a name.
func nameOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return token
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		Subject string `json:"sub"`
	}
	if err != nil || json.Unmarshal(raw, &claims) != nil {
		return "nobody"
	}
	return claims.Subject
}

func (s *Server) knows(r *http.Request) bool {
	if s.inBody {
		return r.PostForm.Get("client_id") == ClientID && r.PostForm.Get("client_secret") == s.secret
	}
	id, secret, _ := r.BasicAuth()
	return id == url.QueryEscape(ClientID) && secret == url.QueryEscape(s.secret)
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
