// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/espalier-dev/espalier/internal/mcpserver/auth/authtest"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// testClock can be put forward.
type testClock struct {
	mu    sync.Mutex
	shift time.Duration
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.shift)
}

func (c *testClock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shift += d
}

func keeper(t *testing.T, clock *testClock, folder string) *Keeper {
	t.Helper()
	k := NewKeeper(Options{
		KeysDir: folder, Client: func(*serverconfig.TLS) (*http.Client, error) { return http.DefaultClient, nil },
		Log: slog.New(slog.DiscardHandler), Now: clock.now,
	})
	t.Cleanup(k.Close)
	return k
}

func withJWT(i *authtest.Issuer, change func(*serverconfig.JWT)) *serverconfig.Config {
	j := &serverconfig.JWT{Issuer: i.URL, Audiences: []string{"mcp", "other"}}
	if change != nil {
		change(j)
	}
	return &serverconfig.Config{Auth: &serverconfig.Auth{JWT: j, Resource: "https://mcp.example.com/agents"}}
}

func bearer(token string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// outcome is the reason of a refusal, or who it is.
func outcome(p *principal.Principal, refusal *Refusal) string {
	if refusal != nil {
		return refusal.Reason
	}
	return string(p.Kind) + " " + p.Subject
}

func TestTokens(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	tests := map[string]struct {
		token string
		want  string
		// words that the refusal's message has.
		words string
	}{
		"good":                      {issuer.Token("mcp", nil), "JWT alice", ""},
		"the second audience":       {issuer.Token("other", nil), "JWT alice", ""},
		"one of several audiences":  {issuer.Token("", map[string]any{"aud": []string{"x", "mcp"}}), "JWT alice", ""},
		"another audience":          {issuer.Token("elsewhere", nil), ReasonInvalidToken, "another audience"},
		"no audience":               {issuer.Token("", map[string]any{"aud": nil}), ReasonInvalidToken, "another audience"},
		"audience is no text":       {issuer.Token("", map[string]any{"aud": 1}), ReasonInvalidToken, "another audience"},
		"another issuer":            {issuer.Token("mcp", map[string]any{"iss": "https://evil.example.com"}), ReasonInvalidToken, "issuer"},
		"issuer with a slash":       {issuer.Token("mcp", map[string]any{"iss": issuer.URL + "/"}), ReasonInvalidToken, "issuer"},
		"no issuer":                 {issuer.Token("mcp", map[string]any{"iss": nil}), ReasonInvalidToken, "issuer"},
		"expired":                   {issuer.Token("mcp", map[string]any{"exp": at(-time.Minute)}), ReasonInvalidToken, "expired"},
		"expired within the leeway": {issuer.Token("mcp", map[string]any{"exp": at(-10 * time.Second)}), "JWT alice", ""},
		"no expiry":                 {issuer.Token("mcp", map[string]any{"exp": nil}), ReasonInvalidToken, "never expires"},
		"expiry is no number":       {issuer.Token("mcp", map[string]any{"exp": "9999999999"}), ReasonInvalidToken, "never expires"},
		"expiry beyond all time":    {issuer.Token("mcp", map[string]any{"exp": 1e300}), ReasonInvalidToken, "never expires"},
		"expiry with a fraction":    {issuer.Token("mcp", map[string]any{"exp": float64(at(time.Hour)) + .5}), "JWT alice", ""},
		"not valid yet":             {issuer.Token("mcp", map[string]any{"nbf": at(time.Minute)}), ReasonInvalidToken, "not valid yet"},
		"soon within the leeway":    {issuer.Token("mcp", map[string]any{"nbf": at(10 * time.Second)}), "JWT alice", ""},
		"issued in the future":      {issuer.Token("mcp", map[string]any{"iat": at(time.Hour)}), ReasonInvalidToken, "not valid yet"},
		"no subject":                {issuer.Token("mcp", map[string]any{"sub": nil}), ReasonInvalidToken, "no subject"},
		"a client alone":            {issuer.Token("mcp", map[string]any{"sub": nil, "client_id": "job"}), "JWT job", ""},
		"a key of somebody else":    {issuer.Foreign("mcp"), ReasonInvalidToken, "signature"},
		"HMAC by the public key":    {issuer.Confused("mcp"), ReasonInvalidToken, "accepted algorithm"},
		"not signed":                {authtest.Unsigned(t, issuer.Claims("mcp", nil)), ReasonInvalidToken, "accepted algorithm"},
		"no token":                  {"hello", ReasonInvalidToken, "accepted algorithm"},
		"three dots":                {"a.b.c", ReasonInvalidToken, "accepted algorithm"},
		"a cut signature":           {strings.TrimRight(issuer.Token("mcp", nil), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") + "AA", ReasonInvalidToken, "signature"},
		"too long":                  {strings.Repeat("a", maxToken+1), ReasonInvalidToken, "too long"},
		"who says to be the probe":  {issuer.Token("mcp", map[string]any{"iss": ProbeIssuer}), ReasonInvalidToken, "signature"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, refusal := a.Authenticate(bearer(test.token))
			if got := outcome(p, refusal); got != test.want {
				t.Fatalf("%s, want %s: %v", got, test.want, refusal)
			}
			if refusal == nil {
				return
			}
			if refusal.Status != http.StatusUnauthorized || !strings.Contains(refusal.Message, test.words) {
				t.Errorf("status %d, %q lacks %q", refusal.Status, refusal.Message, test.words)
			}
			if !strings.Contains(refusal.Challenge, `error="invalid_token"`) || !strings.Contains(refusal.Challenge, `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/agents"`) {
				t.Errorf("challenge %s", refusal.Challenge)
			}
		})
	}
	if n := issuer.KeySets.Load(); n > 2 {
		t.Errorf("the key set was fetched %d times", n)
	}
}

func TestAlgorithms(t *testing.T) {
	for _, algorithm := range []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.ES256, jose.EdDSA} {
		issuer := authtest.New(t, authtest.OAuthPath)
		issuer.Rotate(algorithm)
		a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
		if got := outcome(a.Authenticate(bearer(issuer.Token("mcp", nil)))); got != "JWT alice" {
			t.Errorf("%s: %s", algorithm, got)
		}
	}
}

func TestCredential(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
	good := issuer.Token("mcp", nil)
	tests := map[string]struct {
		header http.Header
		want   string
	}{
		"none":             {http.Header{}, ReasonAuthRequired},
		"empty":            {http.Header{"Authorization": {"Bearer "}}, ReasonAuthRequired},
		"lower case":       {http.Header{"Authorization": {"bearer " + good}}, "JWT alice"},
		"another scheme":   {http.Header{"Authorization": {"Basic YTpi"}}, ReasonInvalidToken},
		"no scheme":        {http.Header{"Authorization": {good}}, ReasonInvalidToken},
		"twice":            {http.Header{"Authorization": {"Bearer " + good, "Bearer " + good}}, ReasonInvalidToken},
		"two kinds":        {http.Header{"Authorization": {"Bearer " + good}, HeaderAPIKey: {"k"}}, ReasonInvalidToken},
		"a token as a key": {http.Header{HeaderAPIKey: {good}}, ReasonInvalidToken},
		"a cookie":         {http.Header{"Cookie": {"token=" + good}}, ReasonAuthRequired},
	}
	for name, test := range tests {
		r := httptest.NewRequest(http.MethodPost, "/mcp?access_token="+good, nil)
		r.Header = test.header
		if got := outcome(a.Authenticate(r)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestScopes(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, func(j *serverconfig.JWT) { j.RequiredScopes = []string{"read", "write"} }))
	tests := map[string]struct {
		claims map[string]any
		want   string
	}{
		"both":         {map[string]any{"scope": "x read write"}, "JWT alice"},
		"as a list":    {map[string]any{"scp": []string{"write", "read"}}, "JWT alice"},
		"as scp text":  {map[string]any{"scp": "write read"}, "JWT alice"},
		"one is short": {map[string]any{"scope": "read"}, ReasonInsufficientScope},
		"a part":       {map[string]any{"scope": "reader writer"}, ReasonInsufficientScope},
		"none":         {nil, ReasonInsufficientScope},
	}
	for name, test := range tests {
		p, refusal := a.Authenticate(bearer(issuer.Token("mcp", test.claims)))
		if got := outcome(p, refusal); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if refusal != nil && (refusal.Status != http.StatusForbidden ||
			!strings.Contains(refusal.Challenge, `error="insufficient_scope"`) || !strings.Contains(refusal.Challenge, `scope="read write"`)) {
			t.Errorf("%s: %d, %s", name, refusal.Status, refusal.Challenge)
		}
	}
	_, refusal := a.Authenticate(httptest.NewRequest(http.MethodPost, "/mcp", nil))
	if refusal == nil || refusal.Status != http.StatusUnauthorized || strings.Contains(refusal.Challenge, "error") || !strings.Contains(refusal.Challenge, `scope="read write"`) {
		t.Errorf("without a token: %+v", refusal)
	}
}

// TestClaims: what a rule can read of a token.
func TestClaims(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
	p, refusal := a.Authenticate(bearer(issuer.Token("mcp", map[string]any{"groups": []string{"finance"}, "scope": "b a", "level": 3})))
	if refusal != nil {
		t.Fatal(refusal)
	}
	if p.Scopes[0] != "a" || p.Claims["level"] != int64(3) || p.Claims["groups"].([]any)[0] != "finance" || time.Until(p.Expires) < 50*time.Minute {
		t.Errorf("%+v", p)
	}
}

// TestRotation: a new key is taken at its first token; the old one ends with
// the next fetch; who makes up key ids causes no more fetches than that.
func TestRotation(t *testing.T) {
	issuer, clock := authtest.New(t, authtest.OpenIDPath), &testClock{}
	k := keeper(t, clock, "")
	a := k.Build(withJWT(issuer, nil))
	old := issuer.Token("mcp", nil)
	if got := outcome(a.Authenticate(bearer(old))); got != "JWT alice" {
		t.Fatal(got)
	}
	issuer.Rotate(jose.ES256)
	fresh := issuer.Token("mcp", nil)
	if got := outcome(a.Authenticate(bearer(fresh))); got != ReasonInvalidToken {
		t.Errorf("fetched again at once: %s", got)
	}
	clock.forward(refreshPause)
	if got := outcome(a.Authenticate(bearer(fresh))); got != "JWT alice" {
		t.Errorf("the new key: %s", got)
	}
	if got := outcome(a.Authenticate(bearer(old))); got != ReasonInvalidToken {
		t.Errorf("the old key: %s", got)
	}
	// A new catalog keeps the keys.
	before := issuer.KeySets.Load()
	a = k.Build(withJWT(issuer, func(j *serverconfig.JWT) { j.RequiredScopes = []string{"x"} }))
	if got := outcome(a.Authenticate(bearer(fresh))); got != ReasonInsufficientScope || issuer.KeySets.Load() != before {
		t.Errorf("%s, %d fetches", got, issuer.KeySets.Load()-before)
	}
	// A flood of unknown key ids.
	key := authtest.New(t, authtest.OpenIDPath)
	key.Rotate(jose.RS256)
	for range 50 {
		if got := outcome(a.Authenticate(bearer(key.Token("mcp", map[string]any{"iss": issuer.URL})))); got != ReasonInvalidToken {
			t.Errorf("an unknown key id: %s", got)
		}
	}
	if n := issuer.KeySets.Load() - before; n > 1 {
		t.Errorf("50 unknown key ids caused %d fetches", n)
	}
}

// TestIssuerDown: without keys it is 503, not 401; with keys all goes on for a
// day, and recovers by itself.
func TestIssuerDown(t *testing.T) {
	issuer, clock := authtest.New(t, authtest.OpenIDPath), &testClock{}
	issuer.Down(true)
	a := keeper(t, clock, "").Build(withJWT(issuer, nil))
	token := issuer.Token("mcp", map[string]any{"exp": time.Now().Add(100 * time.Hour).Unix()})
	p, refusal := a.Authenticate(bearer(token))
	if outcome(p, refusal) != ReasonIssuerUnavailable || refusal.Status != http.StatusServiceUnavailable || refusal.Challenge != "" {
		t.Fatalf("%+v", refusal)
	}
	issuer.Down(false)
	clock.forward(refreshPause)
	if got := outcome(a.Authenticate(bearer(token))); got != "JWT alice" {
		t.Fatal(got)
	}
	issuer.Down(true)
	clock.forward(23 * time.Hour)
	if got := outcome(a.Authenticate(bearer(token))); got != "JWT alice" {
		t.Errorf("after 23 hours: %s", got)
	}
	clock.forward(2 * time.Hour)
	if got := outcome(a.Authenticate(bearer(token))); got != ReasonIssuerUnavailable {
		t.Errorf("after 25 hours: %s", got)
	}
}

// TestForeignMetadata: metadata of another issuer names no keys.
func TestForeignMetadata(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	issuer.Claim = "https://evil.example.com"
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
	if got := outcome(a.Authenticate(bearer(issuer.Token("mcp", nil)))); got != ReasonIssuerUnavailable {
		t.Error(got)
	}
	f := fetcher{config: &serverconfig.JWT{Issuer: "https://login.example.com"}}
	for raw, words := range map[string]string{
		`{"issuer":"https://login.example.com","jwks_uri":"http://login.example.com/k"}`: "not https",
		`{"issuer":"https://login.example.com","jwks_uri":"file:///etc/passwd"}`:         "no jwks_uri",
		`{"issuer":"https://login.example.com","jwks_uri":"https://u:p@h/k"}`:            "no jwks_uri",
		`{"issuer":"https://login.example.com"}`:                                         "no jwks_uri",
		`[]`:                                                                             "no JSON object",
	} {
		if _, err := f.keysURL([]byte(raw)); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestWaysToKeys: a URI of the keys, and the keys themselves.
func TestWaysToKeys(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	byURI := keeper(t, &testClock{}, "").Build(withJWT(issuer, func(j *serverconfig.JWT) { j.JWKSURI = issuer.URL + "/keys" }))
	if got := outcome(byURI.Authenticate(bearer(issuer.Token("mcp", nil)))); got != "JWT alice" || issuer.Metadata.Load() != 0 {
		t.Errorf("%s, metadata was asked %d times", got, issuer.Metadata.Load())
	}
	fetched := issuer.KeySets.Load()
	given := keeper(t, &testClock{}, "").Build(withJWT(issuer, func(j *serverconfig.JWT) { j.JWKS = issuer.JWKS() }))
	if got := outcome(given.Authenticate(bearer(issuer.Token("mcp", nil)))); got != "JWT alice" || issuer.KeySets.Load() != fetched {
		t.Errorf("%s, keys were fetched", got)
	}
	none := keeper(t, &testClock{}, "").Build(withJWT(issuer, func(j *serverconfig.JWT) { j.JWKS = json.RawMessage(`{"keys":[]}`) }))
	if got := outcome(none.Authenticate(bearer(issuer.Token("mcp", nil)))); got != ReasonInvalidToken {
		t.Errorf("no keys: %s", got)
	}
}

func TestServiceAccounts(t *testing.T) {
	cluster := authtest.New(t, authtest.OpenIDPath)
	config := func(subjects ...string) *serverconfig.Config {
		return &serverconfig.Config{Auth: &serverconfig.Auth{ServiceAccounts: &serverconfig.ServiceAccounts{
			Issuer: cluster.URL, JWKS: cluster.JWKS(), Audiences: []string{"mcp"}, Subjects: subjects,
		}}}
	}
	const agent = "system:serviceaccount:team-a:agent"
	tests := map[string]struct {
		subjects []string
		audience string
		want     string
	}{
		"any":              {nil, "mcp", "ServiceAccount " + agent},
		"named":            {[]string{agent}, "mcp", "ServiceAccount " + agent},
		"of the namespace": {[]string{"system:serviceaccount:team-a:*"}, "mcp", "ServiceAccount " + agent},
		"of another":       {[]string{"system:serviceaccount:team-b:*"}, "mcp", ReasonSubjectNotAllowed},
		"the API server's": {nil, "https://kubernetes.default.svc", ReasonInvalidToken},
	}
	for name, test := range tests {
		a := keeper(t, &testClock{}, "").Build(config(test.subjects...))
		p, refusal := a.Authenticate(bearer(cluster.Token(test.audience, map[string]any{"sub": agent})))
		if got := outcome(p, refusal); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
		if refusal != nil && strings.Contains(refusal.Challenge, "resource_metadata") {
			t.Errorf("%s: nobody to ask for a token, but %s", name, refusal.Challenge)
		}
	}
	// An operator that could not read the cluster's keys lets nobody in.
	empty := config()
	empty.Auth.ServiceAccounts.Issuer, empty.Auth.ServiceAccounts.JWKS = "", nil
	a := keeper(t, &testClock{}, "").Build(empty)
	for _, token := range []string{cluster.Token("mcp", nil), cluster.Token("mcp", map[string]any{"iss": nil})} {
		if got := outcome(a.Authenticate(bearer(token))); got != ReasonInvalidToken {
			t.Errorf("without the cluster's keys: %s", got)
		}
	}
}

// TestConcurrent: many first callers wait for one fetch.
func TestConcurrent(t *testing.T) {
	issuer := authtest.New(t, authtest.OpenIDPath)
	a := keeper(t, &testClock{}, "").Build(withJWT(issuer, nil))
	token := issuer.Token("mcp", nil)
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			if got := outcome(a.Authenticate(bearer(token))); got != "JWT alice" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if n := issuer.KeySets.Load(); n != 1 {
		t.Errorf("%d fetches", n)
	}
}

// TestCallerLeaves: a caller that leaves ends neither the fetch nor others.
func TestCallerLeaves(t *testing.T) {
	release := make(chan struct{})
	slow := newRemoteKeys("slow", slog.New(slog.DiscardHandler), time.Now, func(context.Context) ([]jose.JSONWebKey, error) {
		<-release
		return []jose.JSONWebKey{{KeyID: "a"}}, nil
	})
	defer slow.close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := slow.find(ctx, "a", "RS256"); err == nil {
		t.Error("found keys before there were any")
	}
	close(release)
	if keys, err := slow.find(t.Context(), "a", "RS256"); err != nil || len(keys) != 1 {
		t.Errorf("%v, %v", keys, err)
	}
}
