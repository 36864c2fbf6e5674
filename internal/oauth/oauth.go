// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth asks a token endpoint for tokens, for the shared server and
// for the operator's probe alike. It keeps none.
package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// Types of tokens that are exchanged, RFC 8693.
const (
	TypeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	TypeJWT         = "urn:ietf:params:oauth:token-type:jwt"
)

const grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// maxToken is the longest token that is taken, in bytes.
const maxToken = 64 << 10

// Request for a token. The secret and the subject reach the token endpoint and
// nothing else.
type Request struct {
	TokenURL         string
	ClientID, Secret string
	Scopes           []string
	// Audience and Resource that the token is to be for; empty for none.
	Audience, Resource string
	// Subject is the token to exchange, of SubjectType; empty asks for a token
	// of the client itself.
	Subject, SubjectType string
}

// Token is what an endpoint gave.
type Token struct {
	// Value is fit to stand in a header.
	Value string
	// Expires is zero where the endpoint does not say.
	Expires time.Time
}

// Error says why there is no token. Its text holds nothing of the endpoint's
// own words but an error code that the specifications know.
type Error struct {
	// Status of the answer; 0 when there was none, and Err says why.
	Status int
	// Code is one of the known error codes, or empty.
	Code string
	// Err of the network. It may name addresses.
	Err error
}

func (e *Error) Error() string {
	switch {
	case e.Err != nil:
		return "the token endpoint cannot be reached: " + e.Err.Error()
	case e.Code != "":
		return "the token endpoint answered " + e.Code
	case e.Status/100 == 2:
		return "the answer of the token endpoint is no bearer token"
	}
	return "the token endpoint answered with status " + strconv.Itoa(e.Status)
}

func (e *Error) Unwrap() error { return e.Err }

// Refused reports whether the endpoint refused the client or what it asks for:
// another attempt gives the same.
func (e *Error) Refused() bool {
	return e.Code != "" || e.Status == http.StatusBadRequest || e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// codes of errors that may be shown: RFC 6749, RFC 8693, RFC 8707.
var codes = map[string]bool{
	"invalid_request": true, "invalid_client": true, "invalid_grant": true, "unauthorized_client": true,
	"unsupported_grant_type": true, "invalid_scope": true, "invalid_target": true, "access_denied": true,
	"server_error": true, "temporarily_unavailable": true,
}

// maxEndpoints of which is remembered how clients show who they are.
const maxEndpoints = 1000

// Fetcher asks for tokens. The zero value is ready; it is safe for concurrent
// use.
type Fetcher struct {
	mu sync.Mutex
	// inBody are the clients, by endpoint, whose secret belongs in the body.
	inBody map[string]bool
}

// Fetch asks for a token with client, of which redirects are not followed: one
// would carry the secret on. The error is an *Error, but for the end of ctx.
func (f *Fetcher) Fetch(ctx context.Context, client *http.Client, r *Request) (*Token, error) {
	id := r.TokenURL + "\x00" + r.ClientID
	f.mu.Lock()
	style := oauth2.AuthStyleInHeader
	if f.inBody[id] {
		style = oauth2.AuthStyleInParams
	}
	f.mu.Unlock()
	token, err := fetch(ctx, client, r, style)
	if style == oauth2.AuthStyleInParams || !unknownClient(err) {
		return token, err
	}
	// RFC 6749 wants Basic of every server; some take the body alone.
	if token, err = fetch(ctx, client, r, oauth2.AuthStyleInParams); err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.inBody == nil || len(f.inBody) >= maxEndpoints {
			f.inBody = map[string]bool{}
		}
		f.inBody[id] = true
	}
	return token, err
}

// unknownClient reports whether err may come from where the secret stood.
func unknownClient(err error) bool {
	var failure *Error
	return errors.As(err, &failure) && failure.Refused() && (failure.Code == "" || failure.Code == "invalid_client" || failure.Code == "invalid_request")
}

func fetch(ctx context.Context, client *http.Client, r *Request, style oauth2.AuthStyle) (*Token, error) {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	config := clientcredentials.Config{
		ClientID: r.ClientID, ClientSecret: r.Secret, TokenURL: r.TokenURL, Scopes: r.Scopes, AuthStyle: style, EndpointParams: parameters(r),
	}
	got, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, &own))
	if err != nil {
		return nil, failure(ctx, err)
	}
	if kind := got.TokenType; kind != "" && !strings.EqualFold(kind, "bearer") || !fit(got.AccessToken) {
		return nil, &Error{Status: http.StatusOK}
	}
	return &Token{Value: got.AccessToken, Expires: got.Expiry}, nil
}

func parameters(r *Request) url.Values {
	p := url.Values{}
	set := func(name, value string) {
		if value != "" {
			p.Set(name, value)
		}
	}
	set("audience", r.Audience)
	set("resource", r.Resource)
	if r.Subject != "" {
		p.Set("grant_type", grantExchange)
		p.Set("subject_token", r.Subject)
		p.Set("subject_token_type", r.SubjectType)
		p.Set("requested_token_type", TypeAccessToken)
	}
	return p
}

// failure keeps what may be shown of err: the library's own errors quote the
// endpoint's answer.
func failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		out := &Error{Status: refused.Response.StatusCode}
		if codes[refused.ErrorCode] {
			out.Code = refused.ErrorCode
		}
		if out.Status/100 == 2 && out.Code == "" {
			out.Status = http.StatusBadRequest // An error with the status of a success.
		}
		return out
	}
	var network *url.Error // It holds the whole URL, query included.
	if errors.As(err, &network) {
		return &Error{Err: network.Err}
	}
	return &Error{Status: http.StatusOK}
}

// fit reports whether a token can stand in a header: printable, without space.
func fit(token string) bool {
	return token != "" && len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}
