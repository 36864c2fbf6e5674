// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/oauth"
)

const (
	// tokenMargin is how long before its end a token is no longer used, but at
	// most a quarter of its life.
	tokenMargin = 30 * time.Second
	// tokenSilent is how long a token is kept that does not say how long it
	// lasts.
	tokenSilent = 5 * time.Minute
	// maxKeptTokens of all targets.
	maxKeptTokens = 2000
)

// tokens are those that authorization servers gave for targets, so that a
// probe is not one more request to them each time.
type tokens struct {
	fetcher oauth.Fetcher

	mu   sync.Mutex
	kept map[[sha256.Size]byte]keptToken
}

type keptToken struct {
	value string
	until time.Time
}

func (t *tokens) find(o *OAuth) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.kept[o.id()]; time.Now().Before(known.until) {
		return known.value
	}
	return ""
}

func (t *tokens) keep(o *OAuth, token *oauth.Token) {
	now := time.Now()
	until := now.Add(tokenSilent)
	if !token.Expires.IsZero() {
		until = token.Expires.Add(-min(tokenMargin, max(token.Expires.Sub(now), 0)/4))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) >= maxKeptTokens {
		t.kept = nil // They are asked for anew.
	}
	if t.kept == nil {
		t.kept = map[[sha256.Size]byte]keptToken{}
	}
	t.kept[o.id()] = keptToken{token.Value, until}
}

// drop forgets a token that was refused.
func (t *tokens) drop(o *OAuth, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept[o.id()].value == value {
		delete(t.kept, o.id())
	}
}

// id tells clients and their secrets apart.
func (o *OAuth) id() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%#v", []any{
		o.TokenURL, o.ClientID, o.Secret, o.Scopes, o.Audience, o.Resource, o.TLS.CAPEM, o.TLS.System, o.TLS.ServerName, o.TLS.CertPEM, o.TLS.KeyPEM,
	}))
}

// token gives the token that the target's requests show; empty for none.
func (e *exchange) token(ctx context.Context) (string, *failure) {
	switch t := &e.target; {
	case t.OAuth != nil:
		return e.askForToken(ctx, t.OAuth)
	case t.BearerToken != nil:
		token, err := t.BearerToken()
		if err != nil || !validHeader("Authorization", token) {
			return "", &failure{outcome: InvalidTarget, step: StepDial, cause: "header"}
		}
		return token, nil
	}
	return "", nil
}

func (e *exchange) askForToken(ctx context.Context, o *OAuth) (string, *failure) {
	if token := e.client.tokens.find(o); token != "" {
		e.keptToken = token
		return token, nil
	}
	began := time.Now()
	defer e.took(StepToken, began)
	u, problem := checkURL(o.TokenURL, TransportStreamableHTTP)
	if problem != "" {
		return "", &failure{outcome: InvalidTarget, step: StepToken, cause: problem}
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !e.client.opts.Policy.Allows(addr) {
		return "", &failure{outcome: ProbeDenied, step: StepToken} // A proxy would dial it out of sight.
	}
	tr, err := e.client.newTransport(Target{TLS: o.TLS, Timeout: e.target.Timeout}, dialInstead(""))
	if err != nil {
		return "", &failure{outcome: InvalidTarget, step: StepToken, cause: err.Error()}
	}
	defer tr.close()
	token, err := e.client.tokens.fetcher.Fetch(ctx, &http.Client{Transport: tr}, &oauth.Request{
		TokenURL: o.TokenURL, ClientID: o.ClientID, Secret: o.Secret, Scopes: o.Scopes, Audience: o.Audience, Resource: o.Resource,
	})
	if err != nil {
		return "", tokenFailure(ctx, err)
	}
	e.client.tokens.keep(o, token)
	return token.Value, nil
}

func tokenFailure(ctx context.Context, err error) *failure {
	f := &failure{outcome: TokenFailed, step: StepToken, cause: err.Error()}
	var known *oauth.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		f.outcome = Canceled
	case errors.Is(err, errDenied):
		f.outcome = ProbeDenied
	case errors.As(err, &known):
		f.status = known.Status
	}
	return f
}
