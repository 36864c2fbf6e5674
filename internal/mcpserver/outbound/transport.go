// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package outbound

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Authorizer puts tokens on the requests of one connection. A nil one puts
// none.
type Authorizer struct {
	keeper *Keeper
	auth   *serverconfig.OutboundAuth
	// scheme and host of the connection, in lower case: no other is shown a
	// token.
	scheme, host string
}

// For gives the authorizer of a connection; nil when it has no auth.
func (k *Keeper) For(c *serverconfig.Connection) *Authorizer {
	if c.Auth == nil {
		return nil
	}
	scheme, rest, _ := strings.Cut(strings.ToLower(c.URL), "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return &Authorizer{keeper: k, auth: c.Auth, scheme: scheme, host: withPort(scheme, rest)}
}

func withPort(scheme, host string) string {
	u := url.URL{Scheme: scheme, Host: host}
	switch {
	case u.Port() != "":
		return host
	case scheme == "https":
		return host + ":443"
	}
	return host + ":80"
}

// Exchanges reports whether calls are made with a token of their caller.
func (a *Authorizer) Exchanges() bool { return a != nil && a.auth.Exchange != nil }

// Client gives base with tokens. caller is who calls, when that is not said by
// the context of a request; nil is nobody.
func (a *Authorizer) Client(base *http.Client, caller *principal.Principal) *http.Client {
	if a == nil {
		return base
	}
	own := *base
	own.Transport = &transport{Authorizer: a, base: base.Transport, caller: caller}
	return &own
}

type callerKey struct{}

// WithCaller says on whose behalf requests with ctx are made.
func WithCaller(ctx context.Context, caller *principal.Principal) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// transport is an http.RoundTripper that authenticates. Its errors are those
// of Keeper.token.
type transport struct {
	*Authorizer
	base   http.RoundTripper
	caller *principal.Principal
}

// RoundTrip implements http.RoundTripper. A token that the server refuses is
// dropped; a request that may be repeated is made once more with a new one.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.EqualFold(r.URL.Scheme, t.scheme) || !strings.EqualFold(withPort(t.scheme, r.URL.Host), t.host) {
		return t.base.RoundTrip(r) // It was redirected to another origin.
	}
	token, name, err := t.token(r.Context())
	if err != nil {
		closeBody(r)
		return nil, err
	}
	response, err := t.base.RoundTrip(with(r, token))
	if err != nil || token == "" || response.StatusCode != http.StatusUnauthorized {
		return response, err
	}
	t.keeper.drop(name, token)
	again, ok := repeat(r)
	if !ok {
		return response, nil
	}
	if fresh, _, err := t.token(r.Context()); err == nil && fresh != token {
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxRefusal))
		_ = response.Body.Close()
		return t.base.RoundTrip(with(again, fresh))
	}
	closeBody(again)
	return response, nil // There is no better answer than the refusal.
}

// maxRefusal is how much of a refusal is read, so that its connection can be
// used again.
const maxRefusal = 4 << 10

// token of a request; empty where none is to be shown.
func (t *transport) token(ctx context.Context) (string, id, error) {
	caller := t.caller
	if known, ok := ctx.Value(callerKey{}).(*principal.Principal); ok {
		caller = known
	}
	if exchange := t.auth.Exchange; exchange != nil && caller != nil {
		own := caller.Token()
		if own == "" {
			return "", id{}, call.Fail(call.CredentialMissing, "the backend wants to know who calls, and this caller has no token that could be exchanged")
		}
		return t.keeper.token(ctx, &exchange.OAuthClient, &subject{token: own, kind: exchange.SubjectType, expires: caller.Expires})
	}
	if t.auth.ClientCredentials == nil {
		return "", id{}, nil
	}
	return t.keeper.token(ctx, t.auth.ClientCredentials, nil)
}

// with gives r with a token.
func with(r *http.Request, token string) *http.Request {
	if token == "" {
		return r
	}
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}

// repeatable are the methods of which a second request does no more than one.
var repeatable = map[string]bool{http.MethodGet: true, http.MethodHead: true, http.MethodPut: true, http.MethodDelete: true, http.MethodOptions: true}

// repeat gives r once more, if that may be.
func repeat(r *http.Request) (*http.Request, bool) {
	if !repeatable[r.Method] {
		return nil, false
	}
	out := r.Clone(r.Context())
	if r.Body == nil || r.Body == http.NoBody {
		return out, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	if err != nil {
		return nil, false
	}
	out.Body = body
	return out, true
}

func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}
