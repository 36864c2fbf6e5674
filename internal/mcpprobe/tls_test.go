// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem, _ = certify(t, nil, "authority", time.Hour)
	return a
}

// certify makes a certificate for name: signed by signer, or by itself.
func certify(t *testing.T, signer *authority, name string, valid time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, parentKey := template, key
	if signer == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, parentKey = signer.cert, signer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func (a *authority) pair(name string, valid time.Duration) (pair tls.Certificate, certPEM, keyPEM []byte) {
	a.t.Helper()
	_, _, certPEM, keyPEM = certify(a.t, a, name, valid)
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair, certPEM, keyPEM
}

const serviceName = "search-mcp.team-a.svc"

// secure serves the bench's fake by TLS, dialled by address, named by Service.
func (b *bench) secure(config *tls.Config, http2 bool) {
	b.t.Helper()
	server := httptest.NewUnstartedServer(b.fake)
	server.Config.ConnState = b.http.Config.ConnState
	server.TLS = config
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = quiet
	server.StartTLS()
	b.t.Cleanup(server.Close)
	b.target.URL = "https://" + serviceName + ":8443/mcp"
	b.target.DialAddress = server.Listener.Addr().String()
}

// TLS in all the ways it goes right and wrong, over HTTP/1.1 and HTTP/2.
func TestTLS(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	good, _, _ := ca.pair(serviceName, time.Hour)
	expired, _, _ := ca.pair(serviceName, -time.Hour)
	named, _, _ := ca.pair("other.example.test", time.Hour)
	_, clientCert, clientKey := ca.pair("probe", time.Hour)
	_, strangerCert, strangerKey := other.pair("probe", time.Hour)
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	server := func(pair tls.Certificate) *tls.Config { return &tls.Config{Certificates: []tls.Certificate{pair}} }
	mutual := &tls.Config{Certificates: []tls.Certificate{good}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	for name, tc := range map[string]struct {
		server *tls.Config
		client mcpprobe.TLS
		host   string
		want   mcpprobe.Outcome
	}{
		"private CA":           {server: server(good), client: mcpprobe.TLS{CAPEM: ca.pem}, want: mcpprobe.Proved},
		"no CA":                {server: server(good), want: mcpprobe.TLSUntrusted},
		"another CA":           {server: server(good), client: mcpprobe.TLS{CAPEM: other.pem}, want: mcpprobe.TLSUntrusted},
		"expired":              {server: server(expired), client: mcpprobe.TLS{CAPEM: ca.pem}, want: mcpprobe.TLSExpired},
		"wrong name":           {server: server(named), client: mcpprobe.TLS{CAPEM: ca.pem}, want: mcpprobe.TLSWrongName},
		"server name":          {server: server(named), client: mcpprobe.TLS{CAPEM: ca.pem, ServerName: "other.example.test"}, want: mcpprobe.Proved},
		"host override":        {server: server(named), client: mcpprobe.TLS{CAPEM: ca.pem}, host: "other.example.test:443", want: mcpprobe.Proved},
		"client cert":          {server: mutual, client: mcpprobe.TLS{CAPEM: ca.pem, CertPEM: clientCert, KeyPEM: clientKey}, want: mcpprobe.Proved},
		"client cert missing":  {server: mutual, client: mcpprobe.TLS{CAPEM: ca.pem}, want: mcpprobe.TLSClientCertificate},
		"client cert stranger": {server: mutual, client: mcpprobe.TLS{CAPEM: ca.pem, CertPEM: strangerCert, KeyPEM: strangerKey}, want: mcpprobe.TLSClientCertificate},
		"no common version":    {server: &tls.Config{Certificates: []tls.Certificate{good}, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, client: mcpprobe.TLS{CAPEM: ca.pem}, want: mcpprobe.TLSFailed},
		"bad CA":               {server: server(good), client: mcpprobe.TLS{CAPEM: []byte("x")}, want: mcpprobe.InvalidTarget},
		"half a client cert":   {server: server(good), client: mcpprobe.TLS{CAPEM: ca.pem, CertPEM: clientCert}, want: mcpprobe.InvalidTarget},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(name+map[bool]string{false: " h1", true: " h2"}[http2], func(t *testing.T) {
				t.Parallel()
				b := newBench(t, fakemcp.New())
				b.secure(tc.server.Clone(), http2)
				b.target.TLS, b.target.Host = tc.client, tc.host
				r := b.probe()
				if r.Outcome != tc.want || (tc.want != mcpprobe.Proved && r.Step != mcpprobe.StepTLS) {
					t.Errorf("outcome %s at %s, want %s; %s", r.Outcome, r.Step, tc.want, r.Diagnostics.Cause)
				}
				if b.fake.OpenSessions() != 0 {
					t.Error("session left open")
				}
			})
		}
	}
}

// Both schemes confused, case B07 h among them.
func TestSchemeConfusion(t *testing.T) {
	t.Run("http to a TLS server of Go", func(t *testing.T) {
		b := newBench(t, fakemcp.New())
		b.secure(&tls.Config{}, false)
		b.target.URL = "http://" + serviceName + ":8443/mcp"
		if r := b.probe(); r.Outcome != mcpprobe.TLSExpected {
			t.Errorf("outcome %s", r.Outcome)
		}
	})
	t.Run("https to a plain server", func(t *testing.T) {
		b := newBench(t, fakemcp.New())
		b.target.DialAddress = b.http.Listener.Addr().String()
		b.target.URL = "https://" + serviceName + ":8443/mcp"
		if r := b.probe(); r.Outcome != mcpprobe.TLSNotOffered || r.Step != mcpprobe.StepTLS {
			t.Errorf("outcome %s at %s", r.Outcome, r.Step)
		}
	})
	for name, tc := range map[string]struct {
		bytes string
		want  result
	}{
		"h TLS alert":      {"\x15\x03\x03\x00\x02\x02\x28", failed(mcpprobe.TLSExpected, mcpprobe.StepDiscover)},
		"no HTTP":          {"SSH-2.0-FOREIGN\r\n\r\n", failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawNotHTTP)},
		"closed at once":   {"", failed(mcpprobe.ConnectionLost, mcpprobe.StepInitialize)},
		"half a header":    {"HTTP/1.1 200 OK\r\nContent-", failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawNotHTTP)},
		"short body":       {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{", failed(mcpprobe.ConnectionLost, mcpprobe.StepInitialize)},
		"bad chunk":        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", failed(mcpprobe.NotMCP, mcpprobe.StepInitialize).because(mcpprobe.FlawNotHTTP)},
		"switch protocols": {"HTTP/1.1 101 Switching Protocols\r\n\r\n", failed(mcpprobe.UnexpectedStatus, mcpprobe.StepInitialize)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, fakemcp.New())
			b.target.DialAddress = rawServer(t, tc.bytes)
			wantResult(t, b.probe(), tc.want)
		})
	}
}

// rawServer answers each connection with the same bytes.
func rawServer(t *testing.T, answer string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var request [4096]byte
				if _, err := conn.Read(request[:]); err == nil {
					_, _ = conn.Write([]byte(answer))
				}
			}()
		}
	}()
	return listener.Addr().String()
}

// Black holes: a connection that is accepted and never served, and TLS that
// never begins.
func TestBlackHole(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	b := newBench(t, fakemcp.New())
	b.target.DialAddress = listener.Addr().String()
	b.target.Timeout = quick
	wantResult(t, b.probe(), failed(mcpprobe.Timeout, mcpprobe.StepInitialize))
	b.target.URL = "https://" + serviceName + "/mcp"
	r := b.probe()
	wantResult(t, r, failed(mcpprobe.Timeout, mcpprobe.StepTLS))
	wantMessage(t, r, "the TLS handshake")
}

func TestIPv6(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here")
	}
	fake := fakemcp.New()
	server := httptest.NewUnstartedServer(fake)
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	b := newBench(t, fake)
	b.target.URL = server.URL + "/mcp"
	wantResult(t, b.probe(), proved)
	b.target.URL = "http://" + serviceName + "/mcp"
	b.target.DialAddress = listener.Addr().String()
	wantResult(t, b.probe(), proved)
	if got := fake.Requests()[len(fake.Requests())-1].Host; got != serviceName {
		t.Errorf("Host %q", got)
	}
}

// Redirects are followed only where neither method nor origin changes.
func TestRedirects(t *testing.T) {
	other := newBench(t, fakemcp.New())
	for name, tc := range map[string]struct {
		status int
		to     string
		want   mcpprobe.Outcome
	}{
		"307 same origin": {307, "/mcp/", mcpprobe.Proved}, "308 same origin": {308, "/mcp/", mcpprobe.Proved},
		"301": {301, "/mcp/", mcpprobe.Redirected}, "302": {302, "/mcp/", mcpprobe.Redirected}, "303": {303, "/mcp/", mcpprobe.Redirected},
		"other origin": {307, other.target.URL, mcpprobe.Redirected}, "other scheme": {307, "https://127.0.0.1/mcp", mcpprobe.Redirected},
		"loop": {307, "/mcp", mcpprobe.Redirected}, "bad location": {307, "http://[", mcpprobe.Redirected},
		"file": {307, "file:///etc/passwd", mcpprobe.Redirected}, "no location": {307, "", mcpprobe.UnexpectedStatus},
		"304": {304, "", mcpprobe.UnexpectedStatus},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakemcp.New().On(fakemcp.Any, func(c *fakemcp.Call) {
				if c.R.URL.Path == "/mcp/" {
					c.Default()
					return
				}
				if tc.to != "" {
					c.W.Header().Set("Location", tc.to)
				}
				c.W.WriteHeader(tc.status)
			})
			b := newBench(t, fake)
			b.target.Headers = []mcpprobe.Header{{Name: "Authorization", Value: "Bearer x-EXAMPLE", Credential: true}}
			r := b.probe()
			if r.Outcome != tc.want {
				t.Errorf("outcome %s, want %s", r.Outcome, tc.want)
			}
			if tc.want == mcpprobe.Proved && fake.OpenSessions() != 0 {
				t.Error("the session was not ended where it was opened")
			}
			if n := fake.Count(mcp.MethodDiscover); n > 4 {
				t.Errorf("%d hops", n)
			}
		})
	}
	if n := len(other.fake.Requests()); n != 0 {
		t.Errorf("%d requests reached the other origin", n)
	}
}
