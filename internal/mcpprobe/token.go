// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"crypto/ed25519"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Claims of the probe's token.
const (
	// TokenIssuer is its "iss".
	TokenIssuer = "espalier"
	// TokenSubject is its "sub".
	TokenSubject = "probe"
	// TokenLifetime from "iat" to "exp".
	TokenLifetime = 60 * time.Second
	// tokenRenewal before its end a cached token is replaced, so that one in
	// use outlives the longest step and a little difference of clocks.
	tokenRenewal = 25 * time.Second
)

// TokenSigner makes the short-lived JWTs by which servers of ours recognise
// the probe: EdDSA, iss "espalier", sub "probe", aud "NAMESPACE/NAME" of the
// server. Tokens are cached until shortly before their end.
type TokenSigner struct {
	signer jose.Signer
	now    func() time.Time

	mu    sync.Mutex
	cache map[string]cachedToken
	swept time.Time
}

type cachedToken struct {
	token  string
	expiry time.Time
}

// NewTokenSigner signs with key; now is the clock, time.Now when nil.
func NewTokenSigner(key ed25519.PrivateKey, now func() time.Time) (*TokenSigner, error) {
	if now == nil {
		now = time.Now
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: key},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return nil, err
	}
	return &TokenSigner{signer: signer, now: now, cache: map[string]cachedToken{}}, nil
}

// Token for the server audience, which is "NAMESPACE/NAME". It stays valid
// for at least 25 seconds.
func (s *TokenSigner) Token(audience string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if c, ok := s.cache[audience]; ok && c.expiry.Sub(now) > tokenRenewal {
		return c.token, nil
	}
	s.sweep(now)
	expiry := now.Add(TokenLifetime)
	token, err := jwt.Signed(s.signer).Claims(jwt.Claims{
		Issuer:   TokenIssuer,
		Subject:  TokenSubject,
		Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now),
		Expiry:   jwt.NewNumericDate(expiry),
	}).Serialize()
	if err != nil {
		return "", err
	}
	s.cache[audience] = cachedToken{token: token, expiry: expiry}
	return token, nil
}

// Source gives Token for audience as Target.ReportToken and
// Target.BearerToken want it.
func (s *TokenSigner) Source(audience string) func() (string, error) {
	return func() (string, error) { return s.Token(audience) }
}

// sweep drops tokens of servers that are no longer probed, once a lifetime.
func (s *TokenSigner) sweep(now time.Time) {
	if now.Sub(s.swept) < TokenLifetime {
		return
	}
	s.swept = now
	for audience, c := range s.cache {
		if !c.expiry.After(now) {
			delete(s.cache, audience)
		}
	}
}
