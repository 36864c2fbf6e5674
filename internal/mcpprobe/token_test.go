// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

func TestTokenSigner(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	signer, err := mcpprobe.NewTokenSigner(private, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	token := func(audience string) string {
		t.Helper()
		s, err := signer.Source(audience)()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := token("team-a/search")
	parsed, err := jwt.ParseSigned(first, []jose.SignatureAlgorithm{jose.EdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var claims jwt.Claims
	if err := parsed.Claims(public, &claims); err != nil {
		t.Fatal(err)
	}
	expected := jwt.Expected{Issuer: "espalier", Subject: "probe", AnyAudience: jwt.Audience{"team-a/search"}, Time: now}
	if err := claims.ValidateWithLeeway(expected, 0); err != nil {
		t.Error(err)
	}
	if lifetime := claims.Expiry.Time().Sub(claims.IssuedAt.Time()); lifetime != mcpprobe.TokenLifetime {
		t.Errorf("lifetime %s", lifetime)
	}
	if token("team-b/search") == first {
		t.Error("one token for two servers")
	}
	now = now.Add(30 * time.Second)
	if token("team-a/search") != first {
		t.Error("not cached")
	}
	now = now.Add(10 * time.Second)
	if token("team-a/search") == first {
		t.Error("not renewed in time")
	}
}
