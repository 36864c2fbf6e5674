// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admin serves the internal port: the report to the operator, health,
// readiness, metrics. Nothing there touches a backend.
package admin

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// Issuer of the operator's probe token.
	Issuer = "espalier"
	// maxLife is the longest that a token may still be valid.
	maxLife = 15 * time.Minute
	leeway  = 30 * time.Second
	// maxToken is the longest token looked at, in bytes.
	maxToken = 4 << 10
)

var errToken = errors.New("the token is not the operator's")

// authorize checks the probe's token against what is trusted.
func authorize(r *http.Request, trust []serverconfig.ProbeTrust, now time.Time) error {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxToken {
		return errToken
	}
	parsed, err := jwt.ParseSigned(strings.TrimSpace(token), []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return errToken
	}
	for _, t := range trust {
		for _, encoded := range t.Keys {
			if t.Audience != "" && verify(parsed, encoded, t.Audience, now) {
				return nil
			}
		}
	}
	return errToken
}

func verify(token *jwt.JSONWebToken, encoded, audience string, now time.Time) bool {
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return false
	}
	var claims jwt.Claims
	if token.Claims(ed25519.PublicKey(key), &claims) != nil {
		return false
	}
	expected := jwt.Expected{Issuer: Issuer, AnyAudience: jwt.Audience{audience}, Time: now}
	if claims.ValidateWithLeeway(expected, leeway) != nil || claims.Expiry == nil {
		return false
	}
	return claims.Expiry.Time().Before(now.Add(maxLife))
}
