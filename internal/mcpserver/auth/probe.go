// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

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
	// ProbeIssuer is the issuer of the operator's probe token.
	ProbeIssuer = "espalier"
	// maxProbeLife is the longest that such a token may still be valid.
	maxProbeLife = 15 * time.Minute
	// maxProbeToken is the longest one looked at, in bytes.
	maxProbeToken = 4 << 10
)

var errProbeToken = errors.New("the token is not the operator's")

// AuthorizeProbe checks the probe's token of a request against what is
// trusted.
func AuthorizeProbe(r *http.Request, trust []serverconfig.ProbeTrust, now time.Time) error {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return errProbeToken
	}
	_, err := verifyProbe(strings.TrimSpace(token), trust, now)
	return err
}

// verifyProbe gives when the token ends.
func verifyProbe(token string, trust []serverconfig.ProbeTrust, now time.Time) (time.Time, error) {
	if len(token) > maxProbeToken {
		return time.Time{}, errProbeToken
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		return time.Time{}, errProbeToken
	}
	for _, t := range trust {
		for _, encoded := range t.Keys {
			if expiry, ok := verifyProbeBy(parsed, encoded, t.Audience, now); ok {
				return expiry, nil
			}
		}
	}
	return time.Time{}, errProbeToken
}

func verifyProbeBy(token *jwt.JSONWebToken, encoded, audience string, now time.Time) (time.Time, bool) {
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) != ed25519.PublicKeySize || audience == "" {
		return time.Time{}, false
	}
	var claims jwt.Claims
	if token.Claims(ed25519.PublicKey(key), &claims) != nil {
		return time.Time{}, false
	}
	expected := jwt.Expected{Issuer: ProbeIssuer, AnyAudience: jwt.Audience{audience}, Time: now}
	if claims.ValidateWithLeeway(expected, leeway) != nil || claims.Expiry == nil {
		return time.Time{}, false
	}
	expiry := claims.Expiry.Time()
	return expiry, expiry.Before(now.Add(maxProbeLife))
}
