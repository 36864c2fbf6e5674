// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/oauth/oauthtest"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// bench is an authorization server, a backend that takes its tokens, and a
// connection to that.
type bench struct {
	t        *testing.T
	issuer   *oauthtest.Server
	backend  *httptest.Server
	keeper   *Keeper
	folder   string
	outcomes []string

	mu   sync.Mutex
	now  time.Time
	seen []string // method and subject of each request that was let in
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, issuer: oauthtest.New(t, false), folder: t.TempDir(), now: time.Now()}
	b.secret(oauthtest.Secret)
	b.backend = httptest.NewServer(b.issuer.Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		subject, _ := b.issuer.Subject(r)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seen = append(b.seen, strings.TrimSpace(r.Method+" "+subject+" "+string(body)))
	})))
	t.Cleanup(b.backend.Close)
	b.keeper = New(Options{
		Credentials: credentials.New(b.folder), Now: b.clock,
		Client: func(*serverconfig.TLS) (*http.Client, error) { return b.backend.Client(), nil },
		Observe: func(grant, outcome string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.outcomes = append(b.outcomes, grant+" "+outcome)
		},
	})
	t.Cleanup(b.keeper.Close)
	return b
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) secret(value string) {
	b.t.Helper()
	path := filepath.Join(b.folder, "secrets", "s", "k")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(value), 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) client() *serverconfig.OAuthClient {
	return &serverconfig.OAuthClient{TokenURL: b.issuer.TokenURL(), ClientID: oauthtest.ClientID, SecretFile: "secrets/s/k"}
}

func (b *bench) exchange() *serverconfig.TokenExchange {
	return &serverconfig.TokenExchange{OAuthClient: *b.client(), SubjectType: oauth.TypeAccessToken}
}

func (b *bench) do(auth *serverconfig.OutboundAuth, caller *principal.Principal, method, body string) (int, error) {
	b.t.Helper()
	client := b.keeper.For(&serverconfig.Connection{URL: b.backend.URL + "/{x}", Auth: auth}).Client(b.backend.Client(), caller)
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.backend.URL+"/1", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

// ok makes a request that the backend lets in.
func (b *bench) ok(auth *serverconfig.OutboundAuth, caller *principal.Principal) {
	b.t.Helper()
	if status, err := b.do(auth, caller, http.MethodGet, ""); err != nil || status != http.StatusOK {
		b.t.Errorf("answered %d, %v", status, err)
	}
}

func (b *bench) asked(want int) {
	b.t.Helper()
	if n := len(b.issuer.Forms()); n != want {
		b.t.Errorf("%d requests for tokens, want %d", n, want)
	}
}

func person(name string, expires time.Time) *principal.Principal {
	return principal.New(principal.JWT, name, nil, nil, expires).WithToken(name)
}

// reason of a failure, which holds no secret and no word of a peer.
func (b *bench) reason(err error) call.Reason {
	b.t.Helper()
	var failure *call.Error
	if !errors.As(err, &failure) {
		b.t.Errorf("got %v", err)
		return ""
	}
	for _, text := range []string{failure.Message, fmt.Sprint(failure.Cause), err.Error()} {
		for _, secret := range []string{oauthtest.Secret, "s3cret", "who are you", "alice"} {
			if strings.Contains(text, secret) {
				b.t.Errorf("%q tells %q", text, secret)
			}
		}
	}
	return failure.Reason
}

// TestClientCredentials: one token for all, until shortly before its end.
func TestClientCredentials(t *testing.T) {
	b := newBench(t)
	auth := &serverconfig.OutboundAuth{ClientCredentials: b.client()}
	b.ok(auth, principal.Nobody())
	b.ok(auth, person("alice", time.Time{}))
	b.asked(1)
	b.pass(time.Hour - margin - time.Second)
	b.ok(auth, nil)
	b.asked(1)
	b.pass(2 * time.Second)
	b.ok(auth, nil)
	b.asked(2)
	b.issuer.Lasting(0)
	b.pass(2 * time.Hour)
	b.ok(auth, nil)
	b.pass(silent)
	b.ok(auth, nil)
	b.asked(4)
	if len(b.seen) != 6 || b.seen[1] != "GET client" {
		t.Errorf("the backend saw %v", b.seen)
	}
}

// TestExchange: a token for each caller, and for no longer than theirs lasts.
func TestExchange(t *testing.T) {
	b := newBench(t)
	auth := &serverconfig.OutboundAuth{Exchange: b.exchange(), ClientCredentials: b.client()}
	alice := person("alice", b.now.Add(time.Minute))
	for _, caller := range []*principal.Principal{alice, person("bob", time.Time{}), alice, nil} {
		b.ok(auth, caller)
	}
	b.asked(3)
	b.pass(time.Minute)
	b.ok(auth, person("alice", b.now.Add(time.Minute)))
	b.asked(4)
	if got := strings.Join(b.seen, ", "); got != "GET alice, GET bob, GET alice, GET client, GET alice" {
		t.Errorf("the backend saw %s", got)
	}
	// Nobody acts as the server itself because they brought no token.
	for _, caller := range []*principal.Principal{principal.Nobody(), principal.New(principal.APIKey, "ci", nil, nil, time.Time{})} {
		_, err := b.do(auth, caller, http.MethodGet, "")
		if got := b.reason(err); got != call.CredentialMissing {
			t.Errorf("%s: %s", caller.Kind, got)
		}
	}
	b.asked(4)
	// Who the context names comes before whom the client was made for.
	client := b.keeper.For(&serverconfig.Connection{URL: b.backend.URL, Auth: auth}).Client(b.backend.Client(), alice)
	request, _ := http.NewRequestWithContext(WithCaller(t.Context(), person("bob", time.Time{})), http.MethodGet, b.backend.URL, nil)
	if response, err := client.Do(request); err != nil || response.Body.Close() != nil {
		t.Fatal(err)
	}
	if last := b.seen[len(b.seen)-1]; last != "GET bob" {
		t.Errorf("the backend saw %s", last)
	}
	// Without client credentials what is nobody's call shows nothing.
	if status, err := b.do(&serverconfig.OutboundAuth{Exchange: b.exchange()}, nil, http.MethodGet, ""); err != nil || status != http.StatusUnauthorized {
		t.Errorf("answered %d, %v", status, err)
	}
}

// TestRefused: a token that the backend refuses is dropped; what may be
// repeated is, once, whole.
func TestRefused(t *testing.T) {
	b := newBench(t)
	auth := &serverconfig.OutboundAuth{ClientCredentials: b.client()}
	b.ok(auth, nil)
	b.issuer.Revoke()
	if status, err := b.do(auth, nil, http.MethodPut, "whole"); err != nil || status != http.StatusOK {
		t.Errorf("PUT is answered %d, %v", status, err)
	}
	b.asked(2)
	b.issuer.Revoke()
	if status, err := b.do(auth, nil, http.MethodPost, "once"); err != nil || status != http.StatusUnauthorized {
		t.Errorf("POST is answered %d, %v", status, err)
	}
	b.asked(2)
	if status, err := b.do(auth, nil, http.MethodPost, "again"); err != nil || status != http.StatusOK {
		t.Errorf("the next POST is answered %d, %v", status, err)
	}
	b.asked(3)
	if got := strings.Join(b.seen, ", "); got != "GET client, PUT client whole, POST client again" {
		t.Errorf("the backend saw %s", got)
	}
}

// TestFailures: why there is no token, in words that may be shown, and kept
// for a moment so that nobody storms the endpoint.
func TestFailures(t *testing.T) {
	b := newBench(t)
	auth := &serverconfig.OutboundAuth{ClientCredentials: b.client(), Exchange: b.exchange()}
	failing := func(what string, caller *principal.Principal, want call.Reason) {
		t.Helper()
		_, err := b.do(auth, caller, http.MethodGet, "")
		if got := b.reason(err); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	b.issuer.Rotate("another")
	failing("a wrong secret", nil, call.CredentialMissing)
	asked := len(b.issuer.Forms())
	failing("a wrong secret, at once", nil, call.CredentialMissing)
	b.asked(asked)
	b.pass(pause)
	failing("a wrong secret, later", nil, call.CredentialMissing)
	failing("of a caller", person("alice", time.Time{}), call.CredentialMissing)
	// A rotated secret is another client: nothing is waited for but the mount.
	b.secret("another")
	b.until(func() bool { _, err := b.do(auth, nil, http.MethodGet, ""); return err == nil })
	b.pass(2 * time.Hour)
	b.issuer.Fail(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, oauthtest.Secret, http.StatusBadGateway) })
	failing("502", nil, call.BackendFailed)
	b.pass(pause)
	b.issuer.Close()
	failing("a dead endpoint", nil, call.BackendFailed)
	auth.ClientCredentials.SecretFile = "secrets/s/none"
	failing("no secret", nil, call.CredentialMissing)
	if got := b.outcomes[0] + ", " + b.outcomes[len(b.outcomes)-1]; got != "client_credentials CredentialMissing, client_credentials BackendFailed" {
		t.Errorf("outcomes %v", b.outcomes)
	}
}

func (b *bench) until(check func() bool) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if check() {
			return
		}
	}
	b.t.Fatal("it did not happen")
}

// TestAtOnce: many who want one token ask once, and one that leaves takes it
// from nobody.
func TestAtOnce(t *testing.T) {
	b := newBench(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.issuer.Config.Handler = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(arrived) })
			<-release
			next.ServeHTTP(w, r)
		})
	}(b.issuer.Config.Handler)
	client := b.client()
	leaving, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, _, err := b.keeper.token(leaving, client, nil)
		left <- err
	}()
	<-arrived
	results := make(chan string, 50)
	for range cap(results) {
		go func() {
			token, _, err := b.keeper.token(t.Context(), client, nil)
			results <- fmt.Sprint(token, err)
		}()
	}
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(release)
	for range cap(results) {
		if got := <-results; got != "token-1<nil>" {
			t.Errorf("got %s", got)
		}
	}
	b.asked(1)
}

// TestOneOrigin: no other origin is shown a token, wherever a redirect leads.
func TestOneOrigin(t *testing.T) {
	b := newBench(t)
	var shown []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { shown = append(shown, r.Header.Get("Authorization")) }))
	defer elsewhere.Close()
	here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	a := b.keeper.For(&serverconfig.Connection{URL: here.URL, Auth: &serverconfig.OutboundAuth{ClientCredentials: b.client()}})
	response, err := a.Client(&http.Client{Transport: http.DefaultTransport}, nil).Get(here.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if len(shown) != 1 || shown[0] != "" {
		t.Errorf("another origin was shown %q", shown)
	}
	for url, want := range map[string]string{
		"http://A.example/x": "a.example:80", "https://a.example": "a.example:443", "https://a.example:8443/{x}?y": "a.example:8443", "http://[fd00::1]/": "[fd00::1]:80",
	} {
		if got := b.keeper.For(&serverconfig.Connection{URL: url, Auth: &serverconfig.OutboundAuth{}}).host; got != want {
			t.Errorf("%s is at %s, want %s", url, got, want)
		}
	}
	if b.keeper.For(&serverconfig.Connection{URL: here.URL}) != nil {
		t.Error("a connection without auth has an authorizer")
	}
}

// TestBound: what is kept has a bound; what ends first goes first.
func TestBound(t *testing.T) {
	b := newBench(t)
	for i := range maxTokens + 10 {
		b.keeper.keep(id{byte(i), byte(i >> 8), byte(i >> 16)}, kept{token: "t", until: b.now.Add(time.Duration(i+1) * time.Second)})
	}
	if n := len(b.keeper.kept); n != maxTokens {
		t.Errorf("%d are kept", n)
	}
	if _, ok := b.keeper.find(id{5}); ok {
		t.Error("what ends first is still there")
	}
	if _, ok := b.keeper.find(id{byte((maxTokens + 9) & 0xff), byte((maxTokens + 9) >> 8)}); !ok {
		t.Error("the last one is not there")
	}
	b.pass(24 * time.Hour)
	b.keeper.keep(id{1, 2, 3, 4}, kept{token: "t", until: b.now.Add(time.Second)})
	if n := len(b.keeper.kept); n != 1 {
		t.Errorf("%d are kept after all ended", n)
	}
}
