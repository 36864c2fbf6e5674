// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// fuzzNow is when all of this happens: a token must not end while it is
// mutated.
var fuzzNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const fuzzIssuer, fuzzAccounts, fuzzAudience, fuzzAPIKey = "https://login.example.com", "https://kubernetes.default.svc", "mcp", "0123456789abcdef"

// fuzzKey signs all tokens. It is the same in every process that fuzzes.
var fuzzKey = ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))

func signed(f testing.TB, payload string) string {
	f.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: fuzzKey, KeyID: "a"}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	jws, err := signer.Sign([]byte(payload))
	if err != nil {
		f.Fatal(err)
	}
	compact, err := jws.CompactSerialize()
	if err != nil {
		f.Fatal(err)
	}
	return compact
}

// fuzzed recognises callers in all ways that there are.
func fuzzed(f *testing.F) *Authenticator {
	f.Helper()
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: fuzzKey.Public(), KeyID: "a", Algorithm: "EdDSA", Use: "sig"}}})
	if err != nil {
		f.Fatal(err)
	}
	folder := f.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "keys"), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "keys", "robot"), []byte(fuzzAPIKey+"\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	k := NewKeeper(Options{KeysDir: folder, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return fuzzNow }})
	f.Cleanup(k.Close)
	return k.Build(&serverconfig.Config{
		Probe: serverconfig.ProbeTrust{Audience: "team-a/web", Keys: []string{base64.StdEncoding.EncodeToString(fuzzKey.Public().(ed25519.PublicKey))}},
		Auth: &serverconfig.Auth{
			JWT:             &serverconfig.JWT{Issuer: fuzzIssuer, Audiences: []string{fuzzAudience}, JWKS: set},
			ServiceAccounts: &serverconfig.ServiceAccounts{Issuer: fuzzAccounts, Audiences: []string{fuzzAudience}, JWKS: set, Subjects: []string{"system:serviceaccount:team-a:*"}},
			APIKeys:         &serverconfig.APIKeys{Secret: "keys"},
			Resource:        "https://mcp.example.com/agents",
		},
	})
}

// FuzzAuthenticate: whatever a request shows, nobody comes in but who showed
// a credential that was given out, and a refusal says nothing of what was
// shown.
func FuzzAuthenticate(f *testing.F) {
	a := fuzzed(f)
	signer, err := mcpprobe.NewTokenSigner(fuzzKey, func() time.Time { return fuzzNow })
	if err != nil {
		f.Fatal(err)
	}
	probe, err := signer.Token("team-a/web")
	if err != nil {
		f.Fatal(err)
	}
	user := signed(f, `{"iss":"`+fuzzIssuer+`","aud":"mcp","sub":"alice","exp":1796040000,"scope":"read write"}`)
	account := signed(f, `{"iss":"`+fuzzAccounts+`","aud":["mcp"],"sub":"system:serviceaccount:team-a:bot","exp":1796040000}`)
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(user, ".")[1] + "."
	for _, token := range []string{user, account, probe, none, user + ".", fuzzAPIKey, "", "a.b.c", strings.Repeat("x", maxToken+1)} {
		f.Add("Bearer "+token, "")
		f.Add("", token)
	}
	f.Add("Basic eDp5", "")
	f.Add("bearer  "+user, "")
	f.Add("Bearer "+user, fuzzAPIKey)
	known := map[principal.Kind]string{
		principal.JWT: "alice", principal.ServiceAccount: "system:serviceaccount:team-a:bot", principal.APIKey: "robot", principal.Probe: "",
	}
	f.Fuzz(func(t *testing.T, authorization, key string) {
		r := &http.Request{Header: http.Header{}}
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		if key != "" {
			r.Header.Set(HeaderAPIKey, key)
		}
		p, refusal := a.Authenticate(r)
		if (p == nil) == (refusal == nil) {
			t.Fatalf("%v and %v", p, refusal)
		}
		if refusal == nil {
			subject, ok := known[p.Kind]
			if !ok || p.Subject != subject || authorization != "" && key != "" {
				t.Fatalf("%q, %q came in as %s %q", authorization, key, p.Kind, p.Subject)
			}
			return
		}
		if refusal.Status != http.StatusUnauthorized && refusal.Status != http.StatusForbidden {
			t.Fatalf("status %d", refusal.Status)
		}
		said := refusal.Challenge + refusal.Message + refusal.Reason
		for _, shown := range []string{authorization, key} {
			if len(shown) > 24 && strings.Contains(said, shown) {
				t.Fatalf("%q is told again in %q", shown, said)
			}
		}
		if len(said) > 2000 || strings.ContainsAny(said, "\r\n") {
			t.Fatalf("it says %q", said)
		}
	})
}

// FuzzClaims: of tokens that are signed well, those come in whose claims
// another reader of JSON finds good as well.
func FuzzClaims(f *testing.F) {
	a := fuzzed(f)
	for _, seed := range []string{
		`{"iss":"` + fuzzIssuer + `","aud":"mcp","sub":"alice","exp":1796040000}`,
		`{"iss":"` + fuzzIssuer + `","aud":["other","mcp"],"client_id":"c","exp":1796039999.5,"nbf":0,"scp":["a b","c"]}`,
		`{"iss":"` + fuzzIssuer + `","aud":"mcp","sub":"alice","exp":1e400}`, `{"iss":"` + fuzzIssuer + `","aud":"mcp","sub":"alice","exp":-1}`,
		`{"iss":"` + fuzzIssuer + `","aud":"mcp","sub":"alice","exp":1796040000,"nbf":1796040031}`,
		`{"iss":"` + fuzzIssuer + `","iss":"x","aud":"mcp","sub":"alice","exp":1796040000}`, `{"iss":"` + fuzzIssuer + `","aud":"mcp","sub":"alice","exp":"1796040000"}`, `[]`, `null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		p, refusal := a.Authenticate(bearer(signed(t, string(payload))))
		if refusal != nil || p.Kind != principal.JWT {
			return
		}
		var c struct {
			Issuer   string          `json:"iss"`
			Audience json.RawMessage `json:"aud"`
			Expiry   float64         `json:"exp"`
			Before   json.RawMessage `json:"nbf"`
		}
		var exact map[string]any
		if err := json.Unmarshal(payload, &exact); err != nil {
			t.Fatalf("%q is no JSON and comes in", payload)
		}
		c.Issuer, _ = exact["iss"].(string)
		c.Expiry, _ = exact["exp"].(float64)
		audiences, _ := exact["aud"].([]any)
		if one, ok := exact["aud"].(string); ok {
			audiences = append(audiences, one)
		}
		if c.Issuer != fuzzIssuer || !slices.Contains(audiences, any(fuzzAudience)) || c.Expiry+leeway.Seconds() < float64(fuzzNow.Unix()) {
			t.Fatalf("%q comes in", payload)
		}
		if before, ok := exact["nbf"].(float64); ok && before > float64(fuzzNow.Unix())+leeway.Seconds()+1 && before <= maxTime {
			t.Fatalf("%q comes in before its time", payload)
		}
		if p.Subject == "" || p.Expires.IsZero() {
			t.Fatalf("%q makes %+v", payload, p)
		}
	})
}

// FuzzKeysURL: metadata leads to keys of its own issuer only, and never from
// https to http.
func FuzzKeysURL(f *testing.F) {
	fetch := &fetcher{config: &serverconfig.JWT{Issuer: fuzzIssuer}}
	for _, seed := range []string{
		`{"issuer":"` + fuzzIssuer + `","jwks_uri":"https://keys.example.com/a"}`, `{"issuer":"` + fuzzIssuer + `","jwks_uri":"http://keys.example.com/a"}`,
		`{"issuer":"x","jwks_uri":"https://keys.example.com/a"}`, `{"issuer":"` + fuzzIssuer + `","jwks_uri":"https://u:p@h/"}`, `{"jwks_uri":1}`, `{"issuer":"` + fuzzIssuer + `","jwks_uri":"HTTPS:///a"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		address, err := fetch.keysURL(raw)
		if err != nil {
			if address != "" || len(err.Error()) > 100 {
				t.Fatalf("%q, %v", address, err)
			}
			return
		}
		r, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil || r.URL.Scheme != "https" || r.URL.Host == "" || r.URL.User != nil {
			t.Fatalf("%q leads to %q: %v", raw, address, err)
		}
	})
}
