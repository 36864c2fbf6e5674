// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func key(t *testing.T) (ed25519.PrivateKey, string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	return private, base64.StdEncoding.EncodeToString(public)
}

func token(t *testing.T, signer any, algorithm jose.SignatureAlgorithm, claims jwt.Claims) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: signer}, nil)
	must(t, err)
	raw, err := jwt.Signed(s).Claims(claims).Serialize()
	must(t, err)
	return raw
}

func TestReport(t *testing.T) {
	private, public := key(t)
	other, _ := key(t)
	c := config(
		tool("good", func(t *serverconfig.Tool) {
			t.Expression = nil
			t.HTTP = &serverconfig.HTTP{Connection: serverconfig.Connection{URL: "http://backend.example", Headers: []serverconfig.Value{
				{Name: "Authorization", File: "secrets/s/token"}, {Name: "X-Other", File: "secrets/s/absent"},
			}}, Method: "GET"}
		}),
		tool("bad", func(t *serverconfig.Tool) { t.Expression = &serverconfig.Result{Text: "nope"} }),
	)
	c.Probe = serverconfig.ProbeTrust{Audience: "team-a/test", Keys: []string{public}}
	f := start(t, c)
	must(t, os.MkdirAll(filepath.Join(f.creds, "secrets/s"), 0o755))
	must(t, os.WriteFile(filepath.Join(f.creds, "secrets/s/token"), []byte("very-secret"), 0o600))
	now := time.Now()
	claims := func(change func(*jwt.Claims)) jwt.Claims {
		c := jwt.Claims{Issuer: "espalier", Audience: jwt.Audience{"team-a/test"}, Expiry: jwt.NewNumericDate(now.Add(time.Minute))}
		if change != nil {
			change(&c)
		}
		return c
	}
	get := func(authorization string) answer {
		r, err := http.NewRequest(http.MethodGet, f.internal()+podreport.Path, nil)
		must(t, err)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		return f.do(r)
	}
	refused := map[string]string{
		"none":            "",
		"garbage":         "Bearer x.y.z",
		"basic":           "Basic eA==",
		"other key":       "Bearer " + token(t, other, jose.EdDSA, claims(nil)),
		"other audience":  "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.Audience = jwt.Audience{"team-b/test"} })),
		"other issuer":    "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.Issuer = "x" })),
		"expired":         "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(-time.Minute)) })),
		"no expiry":       "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.Expiry = nil })),
		"long life":       "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.Expiry = jwt.NewNumericDate(now.Add(24 * time.Hour)) })),
		"not yet":         "Bearer " + token(t, private, jose.EdDSA, claims(func(c *jwt.Claims) { c.NotBefore = jwt.NewNumericDate(now.Add(time.Hour)) })),
		"HMAC of the key": "Bearer " + token(t, []byte(public), jose.HS256, claims(nil)),
		"long":            "Bearer " + strings.Repeat("x", 10_000),
	}
	for name, authorization := range refused {
		if got := get(authorization); got.status != http.StatusUnauthorized || strings.Contains(got.body, "sha256") {
			t.Errorf("%s: got %d: %s", name, got.status, got.body)
		}
	}
	// The report looks at keys at most once a second.
	var report podreport.Report
	f.until("the mounted key", func() bool {
		got := get("Bearer " + token(t, private, jose.EdDSA, claims(nil)))
		if got.status != http.StatusOK || strings.Contains(got.body, "very-secret") {
			t.Fatalf("got %d: %s", got.status, got.body)
		}
		report = podreport.Report{}
		must(t, json.Unmarshal([]byte(got.body), &report))
		return len(report.Credentials) == 2 && report.Credentials[1].Present
	})
	if report.CatalogState != podreport.CatalogLoaded || !strings.HasPrefix(report.CatalogDigest, "sha256:") || report.ServerVersion != "test" {
		t.Errorf("got %+v", report)
	}
	if fmt.Sprint(report.NotServed) != "[{tool bad InvalidHandler}]" {
		t.Errorf("not served: %v", report.NotServed)
	}
	if c := report.Credentials; c[0].Path != "secrets/s/absent" || c[0].Present || c[0].LoadedAt != nil || c[1].LoadedAt == nil {
		t.Errorf("credentials: %+v", c)
	}
}

// TestReportOfAnUnsupportedCatalog: a new pod that cannot serve its catalog
// must still be able to say so.
func TestReportOfAnUnsupportedCatalog(t *testing.T) {
	private, public := key(t)
	c := config(tool("a", nil))
	c.Requires = []string{"future"}
	c.Probe = serverconfig.ProbeTrust{Audience: "team-a/test", Keys: []string{public}}
	f := start(t, nil)
	f.write(c)
	f.until("a report", func() bool {
		r, err := http.NewRequest(http.MethodGet, f.internal()+podreport.Path, nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+token(t, private, jose.EdDSA, jwt.Claims{Issuer: "espalier", Audience: jwt.Audience{"team-a/test"}, Expiry: jwt.NewNumericDate(time.Now().Add(time.Minute))}))
		got := f.do(r)
		return got.status == 200 && strings.Contains(got.body, `"catalogState":"Unsupported"`) && strings.Contains(got.body, `"missing":["future"]`)
	})
}

func TestMetrics(t *testing.T) {
	f := start(t, config(tool("a", func(t *serverconfig.Tool) { t.Metadata = map[string]string{"costCategory": "high"} }), tool("b", nil)))
	f.do(f.callModern("a", "{}"))
	f.do(f.callModern("b", "{}"))
	f.do(f.callModern("nope", "{}"))
	read := func() string {
		r, err := http.NewRequest(http.MethodGet, f.internal()+"/metrics", nil)
		must(t, err)
		return f.do(r).body
	}
	got := read()
	for _, want := range []string{
		`espalier_server_calls_total{cost_category="high",outcome="ok",tool="a"} 1`,
		`espalier_server_calls_total{cost_category="",outcome="UnknownTool",tool=""} 1`,
		`espalier_server_call_duration_seconds_count{tool="b"} 1`,
		`espalier_server_tools 2`, `espalier_server_catalog_info{digest="` + f.server.Report().CatalogDigest + `"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s", want)
		}
	}
	f.reload(config(tool("a", nil)))
	f.until("the end of b's series", func() bool { return !strings.Contains(read(), `tool="b"`) })
	if got := read(); !strings.Contains(got, "espalier_server_list_changed_total 1") {
		t.Error("list_changed_total is not 1")
	}
}
