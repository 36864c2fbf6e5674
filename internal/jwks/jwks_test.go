// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package jwks

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

func set(t *testing.T, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParse(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := jose.JSONWebKey{Key: public, KeyID: "a", Use: "sig", Algorithm: "EdDSA"}
	tests := map[string]struct {
		raw  []byte
		keys int
	}{
		"one":                  {set(t, good), 1},
		"two":                  {set(t, good, jose.JSONWebKey{Key: other.Public(), KeyID: "b"}), 2},
		"encryption":           {set(t, good, jose.JSONWebKey{Key: other.Public(), Use: "enc"}), 1},
		"a private key":        {set(t, jose.JSONWebKey{Key: private}), 0},
		"a secret":             {set(t, jose.JSONWebKey{Key: []byte("secret")}), 0},
		"a secret's algorithm": {set(t, jose.JSONWebKey{Key: public, Algorithm: "HS256"}), 0},
		"a kind nobody knows":  {[]byte(`{"keys":[{"kty":"XYZ"},` + string(set(t, good))[len(`{"keys":[`):]), 1},
		"empty":                {[]byte(`{"keys":[]}`), 0},
		"no set":               {[]byte(`{}`), 0},
		"a list":               {[]byte(`[]`), 0},
		"no JSON":              {[]byte(`x`), 0},
	}
	for name, test := range tests {
		keys, err := Parse(test.raw)
		if len(keys) != test.keys || (err != nil) != (test.keys == 0) {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}

func TestPick(t *testing.T) {
	keys := []jose.JSONWebKey{{KeyID: "a", Algorithm: "RS256"}, {KeyID: "b"}, {KeyID: "b", Algorithm: "ES256"}}
	for _, test := range []struct {
		kid, algorithm string
		want           int
	}{{"a", "RS256", 1}, {"a", "PS256", 0}, {"b", "RS256", 1}, {"b", "ES256", 2}, {"c", "RS256", 0}, {"", "RS256", 2}} {
		if got := len(Pick(keys, test.kid, test.algorithm)); got != test.want {
			t.Errorf("%q %s: %d, want %d", test.kid, test.algorithm, got, test.want)
		}
	}
}
