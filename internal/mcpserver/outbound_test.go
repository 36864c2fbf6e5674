// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/auth/authtest"
	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/oauth/oauthtest"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// outward is a server whose callers show tokens, and an authorization server
// of what is behind it.
type outward struct {
	*fixture
	test    *testing.T
	inbound *authtest.Issuer
	issuer  *oauthtest.Server

	mu    sync.Mutex
	shown map[string]bool // headers that those behind were shown
}

func startOutward(t *testing.T, change func(*outward, *serverconfig.Config)) *outward {
	t.Helper()
	o := &outward{test: t, inbound: authtest.New(t, authtest.OpenIDPath), issuer: oauthtest.New(t, false), shown: map[string]bool{}}
	c := kinds(func(c *serverconfig.Config) {
		c.Requires = []string{serverconfig.FeatureAuth, serverconfig.FeatureConnectionAuth, serverconfig.FeatureUpstreams}
		c.Auth = &serverconfig.Auth{JWT: &serverconfig.JWT{Issuer: o.inbound.URL, Audiences: []string{"mcp"}}, APIKeys: &serverconfig.APIKeys{Secret: "clients"}}
		c.Policy = &serverconfig.ToolsPolicy{Max: 100}
		change(o, c)
	})
	keys := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(keys, "clients"), 0o750))
	must(t, os.WriteFile(filepath.Join(keys, "clients", "ci"), []byte(keyCI), 0o600))
	o.fixture = start(t, nil, func(options *mcpserver.Options) {
		hurried(options)
		options.APIKeysDir = keys
	})
	o.fixture.secret("secrets/idp/secret", oauthtest.Secret)
	o.reload(c)
	return o
}

func (o *outward) client() *serverconfig.OAuthClient {
	return &serverconfig.OAuthClient{TokenURL: o.issuer.TokenURL(), ClientID: oauthtest.ClientID, SecretFile: "secrets/idp/secret", Scopes: []string{"api"}}
}

func (o *outward) exchange() *serverconfig.TokenExchange {
	return &serverconfig.TokenExchange{OAuthClient: *o.client(), SubjectType: oauth.TypeJWT}
}

func (o *outward) token(subject string) string {
	return o.inbound.Token("mcp", map[string]any{"sub": subject})
}

// behind serves next to those who show a token of the authorization server,
// and notes all that was shown.
func (o *outward) behind(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		for name, values := range r.Header {
			for _, value := range values {
				o.shown[name+": "+value] = true
			}
		}
		o.mu.Unlock()
		o.issuer.Guard(next).ServeHTTP(w, r)
	})
}

// seen is all that those behind were shown until now. Health checks go on while
// a test looks.
func (o *outward) seen() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.shown))
}

// whoami answers the subject of the token that it is shown.
func (o *outward) whoami() http.Handler {
	return o.behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject, _ := o.issuer.Subject(r)
		_, _ = w.Write([]byte(subject))
	}))
}

func (o *outward) backend() string {
	server := httptest.NewServer(o.whoami())
	o.test.Cleanup(server.Close)
	return server.URL
}

func httpTool(name, url, method string, auth *serverconfig.OutboundAuth) serverconfig.Tool {
	return tool(name, func(t *serverconfig.Tool) {
		t.Expression, t.HTTP = nil, &serverconfig.HTTP{Connection: serverconfig.Connection{URL: url, Auth: auth}, Method: method, TimeoutSeconds: 10}
	})
}

// TestOutboundTokens: handlers of tools and resources show tokens of the server
// or of their caller, and never what the caller showed.
func TestOutboundTokens(t *testing.T) {
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		server := &serverconfig.OutboundAuth{ClientCredentials: o.client()}
		caller := &serverconfig.OutboundAuth{Exchange: o.exchange()}
		url := o.backend()
		c.Tools = append(c.Tools, httpTool("as_server", url, "GET", server), httpTool("as_caller", url, "POST", caller))
		c.Resources = append(c.Resources, resource("x:mine", func(r *serverconfig.Resource) {
			r.Text, r.HTTP = nil, &serverconfig.HTTP{Connection: serverconfig.Connection{URL: url, Auth: caller}, Method: "GET", TimeoutSeconds: 10}
		}))
	})
	alice, bob := o.token("alice"), o.token("bob")
	for _, test := range []struct{ tool, token, want string }{
		{"as_server", alice, "client"}, {"as_server", keyCI, "client"},
		{"as_caller", alice, "alice"}, {"as_caller", bob, "bob"}, {"as_caller", alice, "alice"},
	} {
		if got := o.do(as(o.callModern(test.tool, "{}"), test.token)); got.text() != test.want {
			t.Errorf("%s: %s", test.tool, got.body)
		}
	}
	if got := o.do(as(o.read("x:mine"), alice)); !strings.Contains(got.body, `"text":"alice"`) {
		t.Errorf("the resource: %s", got.body)
	}
	if n := len(o.issuer.Forms()); n != 3 {
		t.Errorf("%d requests for tokens", n)
	}
	got := o.do(as(o.callModern("as_caller", "{}"), keyCI))
	if got.reason() != "CredentialMissing" || !strings.Contains(got.text(), "no token that could be exchanged") {
		t.Errorf("a caller without a token: %s", got.body)
	}
	// A GET is made again with another token, a POST is not.
	o.issuer.Revoke()
	if got := o.do(as(o.callModern("as_server", "{}"), alice)); got.text() != "client" {
		t.Errorf("after tokens were revoked: %s", got.body)
	}
	if got := o.do(as(o.callModern("as_caller", "{}"), bob)); got.result()["isError"] != true {
		t.Errorf("a POST with a revoked token: %s", got.body)
	}
	if got := o.do(as(o.callModern("as_caller", "{}"), bob)); got.text() != "bob" {
		t.Errorf("the next POST: %s", got.body)
	}
	for _, shown := range o.seen() {
		if strings.Contains(shown, alice) || strings.Contains(shown, bob) || strings.Contains(shown, keyCI) || strings.Contains(shown, oauthtest.Secret) {
			t.Errorf("a backend saw %s", shown)
		}
	}
}

// TestOutboundFailures: the caller hears why, without a word of the endpoint's;
// a mounted secret that changes is used without a restart.
func TestOutboundFailures(t *testing.T) {
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		c.Tools = append(c.Tools, httpTool("as_server", o.backend(), "GET", &serverconfig.OutboundAuth{ClientCredentials: o.client()}))
	})
	alice := o.token("alice")
	o.issuer.Rotate("rotated")
	got := o.do(as(o.callModern("as_server", "{}"), alice))
	if got.reason() != "CredentialMissing" || !strings.Contains(got.text(), "invalid_client") {
		t.Errorf("a wrong secret: %s", got.body)
	}
	if strings.Contains(got.body, "who are you") || strings.Contains(got.body, oauthtest.Secret) || strings.Contains(got.body, o.issuer.URL) {
		t.Errorf("the answer tells %s", got.body)
	}
	o.fixture.secret("secrets/idp/secret", "rotated")
	o.until("the new secret", func() bool { return o.do(as(o.callModern("as_server", "{}"), alice)).text() == "client" })
	must(t, os.Remove(filepath.Join(o.creds, "secrets", "idp", "secret")))
	o.until("its absence", func() bool {
		got := o.do(as(o.callModern("as_server", "{}"), alice))
		return got.reason() == "CredentialMissing" && strings.Contains(got.text(), `Secret "idp" has no key "secret"`)
	})
	for len(o.log.lines) > 0 {
		if line := string(<-o.log.lines); strings.Contains(line, "rotated") || strings.Contains(line, oauthtest.Secret) || strings.Contains(line, alice) {
			t.Errorf("the log tells %s", line)
		}
	}
}

// asker is an upstream of either era whose tool answers who called.
func (o *outward) asker(t *testing.T, modern bool) (*fakemcp.Server, *peer) {
	f := fakemcp.New()
	f.Settings.Modern, f.Settings.Legacy = modern, !modern
	f.Settings.Capabilities = map[string]any{"tools": map[string]any{}}
	f.Settings.Tools = nil
	f.Settings.Tools = append(f.Settings.Tools, fakemcp.Tool("who"))
	f.On("tools/call", func(c *fakemcp.Call) {
		subject, _ := o.issuer.Subject(c.R)
		c.Result(map[string]any{"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": subject}}})
	})
	t.Cleanup(f.Release)
	return f, newPeer(t, o.behind(f))
}

// TestOutboundUpstreams: lists and health checks are the server's own, calls
// are their callers', in both eras; legacy callers have a session each.
func TestOutboundUpstreams(t *testing.T) {
	fakes := map[string]*fakemcp.Server{}
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		for name, modern := range map[string]bool{"old": false, "new": true} {
			fake, peer := o.asker(t, modern)
			fakes[name] = fake
			u := peer.upstream(name, name+"_")
			u.Auth = &serverconfig.OutboundAuth{ClientCredentials: o.client(), Exchange: o.exchange()}
			c.Upstreams = append(c.Upstreams, u)
			u = peer.upstream(name+"-own", name+"_own_")
			u.Auth = &serverconfig.OutboundAuth{ClientCredentials: o.client()}
			c.Upstreams = append(c.Upstreams, u)
		}
	})
	alice, bob := o.token("alice"), o.token("bob")
	o.until("the tools of upstreams", func() bool {
		got := listed(o.do(as(o.modern("tools/list", ""), alice)))
		return slices.Equal(got, []string{"new_own_who", "new_who", "old_own_who", "old_who", "t"})
	})
	for range 2 {
		for _, test := range []struct{ tool, token, want string }{
			{"old_who", alice, "alice"}, {"old_who", bob, "bob"}, {"new_who", alice, "alice"}, {"new_who", bob, "bob"},
			{"old_own_who", alice, "client"}, {"new_own_who", bob, "client"},
		} {
			if got := o.do(as(o.callModern(test.tool, "{}"), test.token)); got.text() != test.want {
				t.Errorf("%s: %s", test.tool, got.body)
			}
		}
	}
	// The shared session of each connection, and one of each caller.
	if n := fakes["old"].Count("initialize"); n != 4 {
		t.Errorf("%d sessions were opened at the legacy upstream", n)
	}
	for _, tool := range []string{"old_who", "new_who"} {
		if got := o.do(as(o.callModern(tool, "{}"), keyCI)); got.reason() != "CredentialMissing" {
			t.Errorf("%s of a caller without a token: %s", tool, got.body)
		}
	}
	for _, shown := range o.seen() {
		if strings.Contains(shown, alice) || strings.Contains(shown, bob) {
			t.Errorf("an upstream saw %s", shown)
		}
	}
	if got := o.upstreams(); strings.Contains(got, "Unavailable") {
		t.Errorf("callers without a token made an upstream suspicious: %s", got)
	}
}

// TestOutboundUpstreamToken: tokens are renewed behind an open session, and an
// upstream whose authorization server fails says so.
func TestOutboundUpstreamToken(t *testing.T) {
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		_, peer := o.asker(t, true)
		u := peer.upstream("u", "")
		u.Auth = &serverconfig.OutboundAuth{ClientCredentials: o.client()}
		c.Upstreams = []serverconfig.Upstream{u}
	})
	alice := o.token("alice")
	o.until("the upstream", func() bool { return strings.HasPrefix(o.upstreams(), "u Ready") })
	o.issuer.Revoke()
	o.until("a new token", func() bool { return o.do(as(o.callModern("who", "{}"), alice)).text() == "client" })
	o.issuer.Fail(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	o.issuer.Revoke()
	o.until("the reason in the report", func() bool { return strings.HasSuffix(o.upstreams(), "TokenFailed") })
	o.issuer.Fail(nil)
	o.until("the upstream again", func() bool { return strings.HasPrefix(o.upstreams(), "u Ready") })
}

// TestOutboundAPI: an API by its OpenAPI document is read as the server, and
// called as the caller.
func TestOutboundAPI(t *testing.T) {
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		api := httptest.NewServer(o.behind(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			subject, _ := o.issuer.Subject(r)
			switch {
			case r.URL.Path != "/openapi.yaml":
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"name":"` + subject + `"}`))
			case subject == "client":
				_, _ = w.Write([]byte(petsDocument))
			default:
				w.WriteHeader(http.StatusForbidden)
			}
		})))
		o.test.Cleanup(api.Close)
		c.Requires = append(c.Requires, serverconfig.FeatureOpenAPI)
		c.Upstreams = []serverconfig.Upstream{{
			Name: "pets", OpenAPI: &serverconfig.OpenAPI{DocumentURL: api.URL + "/openapi.yaml"},
			Connection: serverconfig.Connection{Auth: &serverconfig.OutboundAuth{ClientCredentials: o.client(), Exchange: o.exchange()}},
		}}
	})
	alice, bob := o.token("alice"), o.token("bob")
	o.until("the API", func() bool { return slices.Contains(listed(o.do(as(o.modern("tools/list", ""), alice))), "getPet") })
	for who, token := range map[string]string{"alice": alice, "bob": bob} {
		if got := o.do(as(o.callModern("getPet", `{"id":"1"}`), token)); !strings.Contains(got.text(), who) {
			t.Errorf("%s: %s", who, got.body)
		}
	}
	if got := o.do(as(o.callModern("getPet", `{"id":"1"}`), keyCI)); got.reason() != "CredentialMissing" {
		t.Errorf("a caller without a token: %s", got.body)
	}
}

// TestOutboundTLS: a token endpoint whose certificate the connection's
// authority signed is trusted, and none else.
func TestOutboundTLS(t *testing.T) {
	idp := oauthtest.New(t, true)
	o := startOutward(t, func(o *outward, c *serverconfig.Config) {
		client := o.client()
		client.TokenURL = idp.TokenURL()
		trusting := *client
		trusting.TLS = &serverconfig.TLS{CAFile: "configmaps/ca/k", System: true}
		backend := httptest.NewServer(idp.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("in")) })))
		o.test.Cleanup(backend.Close)
		c.Tools = append(c.Tools, httpTool("strange", backend.URL, "GET", &serverconfig.OutboundAuth{ClientCredentials: client}),
			httpTool("trusted", backend.URL, "GET", &serverconfig.OutboundAuth{ClientCredentials: &trusting}))
	})
	o.fixture.secret("configmaps/ca/k", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: idp.Certificate().Raw})))
	alice := o.token("alice")
	o.until("the mounted authority", func() bool { return o.do(as(o.callModern("trusted", "{}"), alice)).text() == "in" })
	if got := o.do(as(o.callModern("strange", "{}"), alice)); got.reason() != "BackendFailed" || !strings.Contains(got.text(), "authorization server") {
		t.Errorf("an endpoint that nobody trusts: %s", got.body)
	}
}
