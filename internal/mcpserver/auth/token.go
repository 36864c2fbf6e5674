// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/espalier-dev/espalier/internal/jwks"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

const (
	// maxToken is the longest token looked at, in bytes.
	maxToken = 16 << 10
	// leeway is how far clocks may differ.
	leeway = 30 * time.Second
)

// Why a token is not good. The texts reach the caller.
var (
	errMalformed = errors.New("it is no signed token of an accepted algorithm")
	errSignature = errors.New("its signature is not of a key of the issuer")
	errIssuer    = errors.New("its issuer is not accepted")
	errAudience  = errors.New("it was made for another audience")
	errExpired   = errors.New("it has expired")
	errNotYet    = errors.New("it is not valid yet")
	errNoExpiry  = errors.New("it never expires")
	errNoSubject = errors.New("it has no subject")
)

// token is a token of which nothing but the form was looked at.
type token struct {
	jws *jose.JSONWebSignature
	// issuer is what it claims.
	issuer string
}

// parseToken reads a token in compact form.
func parseToken(text string) (*token, error) {
	jws, err := jose.ParseSignedCompact(text, jwks.Algorithms)
	if err != nil || len(jws.Signatures) != 1 {
		return nil, errMalformed
	}
	claims, err := decodeClaims(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return nil, err
	}
	return &token{jws: jws, issuer: claims.text("iss")}, nil
}

// issuer is one whose tokens are accepted.
type issuer struct {
	name      string
	audiences []string
	keys      keySet
}

// verify checks signature and claims and gives the latter.
func (i *issuer) verify(ctx context.Context, t *token, now time.Time) (claims, error) {
	header := t.jws.Signatures[0].Protected
	keys, err := i.keys.find(ctx, header.KeyID, header.Algorithm)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		payload, err := t.jws.Verify(key)
		if err != nil {
			continue
		}
		verified, err := decodeClaims(payload)
		if err != nil {
			return nil, err
		}
		return verified, i.check(verified, now)
	}
	return nil, errSignature
}

func (i *issuer) check(c claims, now time.Time) error {
	expiry, ok := c.time("exp")
	switch {
	case i.name == "" || c.text("iss") != i.name:
		return errIssuer
	case !slices.ContainsFunc(c.texts("aud"), func(a string) bool { return slices.Contains(i.audiences, a) }):
		return errAudience
	case !ok:
		return errNoExpiry
	case !now.Before(expiry.Add(leeway)):
		return errExpired
	}
	for _, name := range []string{"nbf", "iat"} {
		if at, ok := c.time(name); ok && now.Add(leeway).Before(at) {
			return errNotYet
		}
	}
	if c.subject() == "" {
		return errNoSubject
	}
	return nil
}

// claims of a token.
type claims map[string]any

func decodeClaims(raw []byte) (claims, error) {
	value, err := wire.Decode(raw)
	object, ok := value.(map[string]any)
	if err != nil || !ok {
		return nil, errMalformed
	}
	return object, nil
}

func (c claims) text(name string) string {
	s, _ := c[name].(string)
	return s
}

// texts gives a claim that is a text or a list of them.
func (c claims) texts(name string) []string {
	switch v := c[name].(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, element := range v {
			if s, ok := element.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// maxTime is the last second that is taken for a time: the year 9999.
const maxTime = 253402300799

func (c claims) time(name string) (time.Time, bool) {
	var seconds float64
	switch v := c[name].(type) {
	case int64:
		seconds = float64(v)
	case float64:
		seconds = v
	default:
		return time.Time{}, false
	}
	if !(seconds >= 0 && seconds <= maxTime) {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// subject is sub, or the client where a token is of one alone.
func (c claims) subject() string {
	for _, name := range []string{"sub", "client_id", "azp"} {
		if s := c.text(name); s != "" {
			return s
		}
	}
	return ""
}

// scopes are those of scope (RFC 9068, a text with spaces) or of scp, which
// some issuers write, a text or a list.
func (c claims) scopes() []string {
	var out []string
	for _, name := range []string{"scope", "scp"} {
		for _, text := range c.texts(name) {
			out = append(out, strings.Fields(text)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
