// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving/servingtest"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const serviceName = "web-mcp.team-a.svc"

func encryptedConfig() *serverconfig.Config {
	c := askingConfig()
	c.TLS = &serverconfig.ServingTLS{
		CertFile: "secrets/web/tls.crt", KeyFile: "secrets/web/tls.key", CAFile: "secrets/web/ca.crt", ServerName: serviceName,
	}
	c.Require(serverconfig.FeatureTLS)
	return c
}

func newAuthority(t testing.TB) *servingtest.Authority {
	t.Helper()
	a, err := servingtest.NewAuthority()
	must(t, err)
	return a
}

// certify mounts a certificate for name by a, and gives it.
func (f *fixture) certify(a *servingtest.Authority, name string, valid time.Duration) []byte {
	f.t.Helper()
	cert, key, err := a.Issue(name, valid)
	must(f.t, err)
	f.mounted(map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": a.PEM})
	return cert
}

// mounted mounts the Secret web, each key by a rename: no key is seen half.
func (f *fixture) mounted(keys map[string][]byte) {
	f.t.Helper()
	folder := filepath.Join(f.creds, "secrets", "web")
	must(f.t, os.MkdirAll(folder, 0o755))
	for key, value := range keys {
		must(f.t, os.WriteFile(filepath.Join(folder, key+".new"), value, 0o600))
		must(f.t, os.Rename(filepath.Join(folder, key+".new"), filepath.Join(folder, key)))
	}
}

// trusting makes the fixture's client speak TLS, on a new connection each time.
func (f *fixture) trusting(a *servingtest.Authority) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(a.PEM)
	f.client.Transport = &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: serviceName, ClientSessionCache: tls.NewLRUClientSessionCache(8)},
	}
}

// secured makes a request go to the TLS port.
func secured(r *http.Request) *http.Request {
	r.URL.Scheme = "https"
	return r
}

// shows is the certificate that a new connection is shown; nil for none.
func (f *fixture) shows() []byte {
	c, err := tls.Dial("tcp", f.server.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Raw
}

func leaf(t testing.TB, cert []byte) string {
	t.Helper()
	block, _ := pem.Decode(cert)
	if block == nil {
		t.Fatal("no certificate")
	}
	return string(block.Bytes)
}

// TestTLS: the port speaks TLS and nothing else, and shows the newest
// certificate that can be used.
func TestTLS(t *testing.T) {
	a := newAuthority(t)
	f := start(t, nil)
	f.write(encryptedConfig())
	f.until("a catalog without a certificate", func() bool { _, why := f.server.Ready(); return why == "NoCertificate" })
	if f.shows() != nil {
		t.Error("somebody was shown a certificate")
	}
	first := f.certify(a, serviceName, time.Hour)
	f.until("the certificate", func() bool { ok, _ := f.server.Ready(); return ok })
	f.trusting(a)
	got := f.do(secured(f.callModern("ping", "{}")))
	if got.text() != "ping" {
		t.Fatalf("got %d: %s", got.status, got.body)
	}
	plain, err := http.Get(f.url())
	must(t, err)
	body, err := io.ReadAll(plain.Body)
	must(t, err)
	must(t, plain.Body.Close())
	if plain.StatusCode != http.StatusBadRequest || !strings.Contains(string(body), "HTTPS") {
		t.Errorf("in clear: got %d: %s", plain.StatusCode, body)
	}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	if c, err := tls.Dial("tcp", f.server.Addr().String(), old); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}

	second := f.certify(a, serviceName, 2*time.Hour)
	f.until("the second certificate", func() bool { return string(f.shows()) == leaf(t, second) })
	if got := f.do(secured(f.callModern("ping", "{}"))); got.text() != "ping" {
		t.Errorf("after a rotation: got %d: %s", got.status, got.body)
	}
	// A key that is of another certificate: the one before stays, and it is told once.
	_, key, err := a.Issue(serviceName, time.Hour)
	must(t, err)
	f.mounted(map[string][]byte{"tls.key": key})
	f.until("a line in the log", func() bool { f.shows(); return f.logged("cannot be used") == 1 })
	if string(f.shows()) != leaf(t, second) {
		t.Error("with a key that does not fit: another certificate is shown")
	}
	must(t, os.RemoveAll(filepath.Join(f.creds, "secrets")))
	f.until("that it is gone", func() bool {
		for _, c := range f.server.Report().Credentials {
			if c.Present {
				return false
			}
		}
		return true
	})
	if ok, why := f.server.Ready(); !ok || string(f.shows()) != leaf(t, second) {
		t.Errorf("a Secret that is deleted under the server: ready %t %s", ok, why)
	}
	third := f.certify(a, serviceName, -time.Hour) // Expired: the clients' matter.
	f.until("an expired certificate", func() bool { return string(f.shows()) == leaf(t, third) })
	if string(first) == string(second) {
		t.Error("the test issues one certificate twice")
	}
}

// TestTLSSwitched: a connection that was opened in clear ends with the first
// request after the catalog wants TLS.
func TestTLSSwitched(t *testing.T) {
	a := newAuthority(t)
	f := start(t, askingConfig())
	f.certify(a, serviceName, time.Hour)
	if got := f.do(f.callModern("ping", "{}")); got.text() != "ping" {
		t.Fatalf("got %d: %s", got.status, got.body)
	}
	f.reload(encryptedConfig())
	got := f.do(f.callModern("ping", "{}"))
	if got.status != http.StatusMisdirectedRequest || !strings.Contains(got.body, "TLSRequired") {
		t.Errorf("on the old connection: got %d: %s", got.status, got.body)
	}
	if got := f.do(f.callModern("ping", "{}")); got.status != http.StatusBadRequest {
		t.Errorf("on a new one: got %d: %s", got.status, got.body)
	}
	plain := f.client
	f.client = &http.Client{}
	f.trusting(a)
	if got := f.do(secured(f.callModern("ping", "{}"))); got.text() != "ping" {
		t.Errorf("over TLS: got %d: %s", got.status, got.body)
	}
	f.client = plain
	f.reload(askingConfig())
	if got := f.do(f.callModern("ping", "{}")); got.text() != "ping" {
		t.Errorf("in clear again: got %d: %s", got.status, got.body)
	}
}

// certified mounts one certificate for all replicas.
func certified(t testing.TB, a *servingtest.Authority) func(*mcpserver.Options) {
	t.Helper()
	cert, key, err := a.Issue(serviceName, time.Hour)
	must(t, err)
	return func(o *mcpserver.Options) {
		f := &fixture{t: t, creds: o.CredentialsDir}
		f.mounted(map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": a.PEM})
	}
}

// TestTLSOverReplicas: what is passed on to another replica goes over TLS, also
// while one has another certificate than the other, and not to one that is not
// trusted. Health is asked in clear.
func TestTLSOverReplicas(t *testing.T) {
	a := newAuthority(t)
	f := startFleet(t, encryptedConfig(), asking, certified(t, a))
	for _, replica := range f.replicas {
		replica.trusting(a)
	}
	begin := func(at *fixture) *legacyClient {
		t.Helper()
		r := secured(at.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
		return &legacyClient{f: at, id: at.do(r).header.Get("Mcp-Session-Id")}
	}
	call := func(c *legacyClient, at *fixture) answer {
		t.Helper()
		c = c.at(at)
		return at.do(secured(c.call("1", "ping", "")))
	}
	passed := func(what string, c *legacyClient, at *fixture) {
		t.Helper()
		if got := call(c, at); got.text() != "ping" {
			t.Errorf("%s: got %d: %s", what, got.status, got.body)
		}
	}
	r0, r1, r2 := f.replicas[0], f.replicas[1], f.replicas[2]
	at0, at1 := begin(r0), begin(r1)
	passed("with one certificate", at0, r1)
	cert := r0.certify(a, serviceName, 2*time.Hour)
	r0.until("a certificate that only one replica has", func() bool { return string(r0.shows()) == leaf(t, cert) })
	passed("to the one that has a newer one", begin(r0), r1)
	passed("from the one that has a newer one", at1, r0)

	// Until now this one has called nobody.
	r2.mounted(map[string][]byte{"ca.crt": newAuthority(t).PEM})
	if got := call(begin(r0), r2); got.status != http.StatusBadGateway {
		t.Errorf("to one that is not trusted: got %d: %s", got.status, got.body)
	}
	passed("to one with the very certificate", at1, r2)
	for _, replica := range f.replicas {
		response, err := http.Get(replica.internal() + "/readyz")
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != http.StatusOK {
			t.Errorf("readiness in clear: %d", response.StatusCode)
		}
	}
}
