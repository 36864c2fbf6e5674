// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outbound shows servers behind who calls them: it asks token
// endpoints for tokens, of the server itself or in exchange for a caller's,
// keeps them, and puts them on requests to the declared origin and nowhere
// else.
package outbound

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// fetchTime bounds one request for a token.
	fetchTime = 10 * time.Second
	// margin is how long before its end a token is no longer used, but at most
	// a quarter of its life.
	margin = 30 * time.Second
	// silent is how long a token is kept of which nobody says how long it lasts.
	silent = 5 * time.Minute
	// pause after a refusal or a failure, in which it stands for all who ask.
	pause = 2 * time.Second
	// maxTokens are kept at a time.
	maxTokens = 10000
)

// Options of a Keeper.
type Options struct {
	Credentials *credentials.Store
	// Client gives the HTTP client for TLS settings; nil is the system's.
	Client func(*serverconfig.TLS) (*http.Client, error)
	// Observe, when set, is told how each request for a token ended.
	Observe func(grant, outcome string)
	// Now is the clock; nil is the system's.
	Now func() time.Time
}

// Keeper gets and keeps tokens. It is safe for concurrent use.
type Keeper struct {
	options Options
	fetcher oauth.Fetcher
	flights singleflight.Group
	life    context.Context //nolint:containedctx // of all requests for tokens
	cancel  context.CancelFunc

	mu   sync.Mutex
	kept map[id]kept
}

// id tells clients, their secrets and the tokens they exchange apart.
type id [sha256.Size]byte

// kept is a token, or why there is none.
type kept struct {
	token string
	err   error
	until time.Time
}

// New gives a Keeper.
func New(options Options) *Keeper {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Observe == nil {
		options.Observe = func(string, string) {}
	}
	k := &Keeper{options: options, kept: map[id]kept{}}
	k.life, k.cancel = context.WithCancel(context.Background())
	return k
}

// Close ends all requests for tokens.
func (k *Keeper) Close() { k.cancel() }

// subject is a token to exchange.
type subject struct {
	token, kind string
	// expires: what it is exchanged for is kept no longer; zero is never.
	expires time.Time
}

// token gives a token of client, in exchange for s unless that is nil. The
// error is a *call.Error that may be shown, but for the end of ctx.
func (k *Keeper) token(ctx context.Context, client *serverconfig.OAuthClient, s *subject) (string, id, error) {
	secret, err := k.options.Credentials.Text(client.SecretFile)
	if err != nil {
		var missing *credentials.MissingError
		if errors.As(err, &missing) {
			return "", id{}, call.Fail(call.CredentialMissing, "%s", missing.Error())
		}
		return "", id{}, call.Fail(call.CredentialMissing, "a mounted credential cannot be read")
	}
	if s == nil {
		s = &subject{}
	}
	name := identify(client, secret, s)
	if known, ok := k.find(name); ok {
		return known.token, name, known.err
	}
	done := k.flights.DoChan(string(name[:]), func() (any, error) {
		if known, ok := k.find(name); ok { // The flight before this one.
			return known, nil
		}
		return k.fetch(name, client, secret, s), nil
	})
	select {
	case got := <-done:
		known, _ := got.Val.(kept)
		return known.token, name, known.err
	case <-ctx.Done():
		return "", name, context.Cause(ctx)
	}
}

func identify(client *serverconfig.OAuthClient, secret string, s *subject) id {
	raw, _ := json.Marshal([]any{client, secret, s.token, s.kind}) // Plain data: it cannot fail.
	return sha256.Sum256(raw)
}

func (k *Keeper) find(name id) (kept, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	known, ok := k.kept[name]
	if !ok || !k.options.Now().Before(known.until) {
		return kept{}, false
	}
	return known, true
}

// fetch asks for a token and keeps what comes of it. It goes on when who
// wanted it leaves: others may wait for the same.
func (k *Keeper) fetch(name id, client *serverconfig.OAuthClient, secret string, s *subject) kept {
	ctx, cancel := context.WithTimeout(k.life, fetchTime)
	defer cancel()
	began := k.options.Now()
	token, err := k.ask(ctx, client, secret, s)
	grant, outcome := "client_credentials", "ok"
	if s.token != "" {
		grant = "token_exchange"
	}
	var out kept
	if err != nil {
		failure := shown(err, s.token != "")
		out, outcome = kept{err: failure, until: k.options.Now().Add(pause)}, string(failure.Reason)
	} else {
		out = kept{token: token.Value, until: until(began, token.Expires, s.expires)}
	}
	k.options.Observe(grant, outcome)
	k.keep(name, out)
	return out
}

func (k *Keeper) ask(ctx context.Context, client *serverconfig.OAuthClient, secret string, s *subject) (*oauth.Token, error) {
	base, err := k.options.Client(client.TLS)
	if err != nil {
		return nil, err
	}
	return k.fetcher.Fetch(ctx, base, &oauth.Request{
		TokenURL: client.TokenURL, ClientID: client.ClientID, Secret: secret, Scopes: client.Scopes,
		Audience: client.Audience, Resource: client.Resource, Subject: s.token, SubjectType: s.kind,
	})
}

// until when a token of now is used.
func until(now, expires, subject time.Time) time.Time {
	end := now.Add(silent)
	if !expires.IsZero() {
		end = expires.Add(-min(margin, max(expires.Sub(now), 0)/4))
	}
	if !subject.IsZero() && subject.Before(end) {
		end = subject
	}
	return end
}

// shown is what a caller sees of err.
func shown(err error, exchange bool) *call.Error {
	var known *call.Error
	if errors.As(err, &known) {
		return known
	}
	var failure *oauth.Error
	switch {
	case errors.As(err, &failure) && failure.Refused() && exchange:
		return call.Fail(call.CredentialMissing, "the authorization server of the backend gave no token for this caller (%s)", word(failure)).Because(err)
	case errors.As(err, &failure) && failure.Refused():
		return call.Fail(call.CredentialMissing, "the authorization server of the backend gave no token (%s)", word(failure)).Because(err)
	case errors.As(err, &failure) && failure.Err == nil:
		return call.Fail(call.BackendFailed, "the authorization server of the backend failed").Because(err)
	}
	return call.Fail(call.BackendFailed, "the authorization server of the backend cannot be reached").Because(err)
}

func word(failure *oauth.Error) string {
	if failure.Code != "" {
		return failure.Code
	}
	return http.StatusText(failure.Status)
}

func (k *Keeper) keep(name id, value kept) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, known := k.kept[name]; !known && len(k.kept) >= maxTokens {
		k.sweep()
	}
	k.kept[name] = value
}

// sweep makes room: what is over goes, else what ends first.
func (k *Keeper) sweep() {
	now := k.options.Now()
	var first id
	var ends time.Time
	for name, value := range k.kept {
		if !now.Before(value.until) {
			delete(k.kept, name)
			continue
		}
		if ends.IsZero() || value.until.Before(ends) {
			first, ends = name, value.until
		}
	}
	if len(k.kept) >= maxTokens {
		delete(k.kept, first)
	}
}

// drop forgets a token that was refused, unless another one came meanwhile.
func (k *Keeper) drop(name id, token string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if known, ok := k.kept[name]; ok && known.token == token {
		delete(k.kept, name)
	}
}
