// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authtest is a small authorization server for tests: metadata, a key
// set that can be rotated, and tokens, good ones and bad ones.
package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is an authorization server.
type Issuer struct {
	// URL is its issuer identifier.
	URL string
	// Server may be closed to make it unreachable.
	Server *httptest.Server
	// Metadata and KeySets count the requests for either.
	Metadata, KeySets atomic.Int64
	// Claim is the issuer that the metadata names; URL by default.
	Claim string

	t  testing.TB
	mu sync.Mutex
	// keys that are published.
	keys []jose.JSONWebKey
	sign jose.SigningKey
	next int
	down bool
}

// New starts an issuer with one RSA key. Its metadata lies at path, which is
// that of OpenID Connect or of RFC 8414.
func New(t testing.TB, path string) *Issuer {
	t.Helper()
	i := &Issuer{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
		i.Metadata.Add(1)
		if i.broken(w) {
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.Claim, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.KeySets.Add(1)
		if i.broken(w) {
			return
		}
		_, _ = w.Write(i.JWKS())
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Server.Close)
	i.URL, i.Claim = i.Server.URL, i.Server.URL
	i.Rotate(jose.RS256)
	return i
}

// OpenIDPath is where OpenID Connect has metadata, OAuthPath RFC 8414.
const (
	OpenIDPath = "/.well-known/openid-configuration"
	OAuthPath  = "/.well-known/oauth-authorization-server"
)

// Down makes every request fail, or no more.
func (i *Issuer) Down(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

func (i *Issuer) broken(w http.ResponseWriter) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		w.WriteHeader(http.StatusInternalServerError)
	}
	return i.down
}

// JWKS is the key set as it is published.
func (i *Issuer) JWKS() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: i.keys})
	if err != nil {
		i.t.Error(err)
	}
	return raw
}

// Rotate replaces the key by a new one for algorithm.
func (i *Issuer) Rotate(algorithm jose.SignatureAlgorithm) {
	i.t.Helper()
	private := newKey(i.t, algorithm)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.next++
	kid := fmt.Sprintf("key-%d", i.next)
	i.sign = jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: private, KeyID: kid}}
	i.keys = []jose.JSONWebKey{{Key: private.Public(), KeyID: kid, Algorithm: string(algorithm), Use: "sig"}}
}

func newKey(t testing.TB, algorithm jose.SignatureAlgorithm) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch algorithm {
	case jose.EdDSA:
		_, private, e := ed25519.GenerateKey(rand.Reader)
		key, err = private, e
	case jose.ES256:
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Claims are good ones for audience, changed by change: nil removes a claim.
func (i *Issuer) Claims(audience string, change map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "aud": audience, "sub": "alice", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
	maps.Copy(claims, change)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return claims
}

// Token is a token of the present key.
func (i *Issuer) Token(audience string, change map[string]any) string {
	i.t.Helper()
	i.mu.Lock()
	key := i.sign
	i.mu.Unlock()
	return Sign(i.t, key, i.Claims(audience, change))
}

// Sign signs claims by any key.
func Sign(t testing.TB, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Unsigned is a token of the algorithm none.
func Unsigned(t testing.TB, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + encode(payload) + "."
}

// Foreign is a token of a key that the issuer never had, under its key's id.
func (i *Issuer) Foreign(audience string) string {
	i.t.Helper()
	i.mu.Lock()
	kid := i.keys[0].KeyID
	i.mu.Unlock()
	key := jose.JSONWebKey{Key: newKey(i.t, jose.RS256), KeyID: kid}
	return Sign(i.t, jose.SigningKey{Algorithm: jose.RS256, Key: key}, i.Claims(audience, nil))
}

// Confused is a token by HMAC whose secret is the issuer's public key, the
// trick that an allow-list of algorithms defeats.
func (i *Issuer) Confused(audience string) string {
	i.t.Helper()
	secret := jose.JSONWebKey{Key: i.JWKS(), KeyID: "key-1"}
	return Sign(i.t, jose.SigningKey{Algorithm: jose.HS256, Key: secret}, i.Claims(audience, nil))
}
