// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/clusterhost"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	dialTimeout     = 5 * time.Second
	handshakeLimit  = 10 * time.Second
	idlePerHost     = 64
	idleTotal       = 512
	idleTimeout     = 90 * time.Second
	maxRedirects    = 5
	maxHeaderOfBack = 256 << 10
)

// clients are shared by all tools with the same TLS settings. A client is
// made anew when the mounted files it was made from change.
type clients struct {
	store *credentials.Store

	mu   sync.Mutex
	made map[serverconfig.TLS]*clientEntry
}

type clientEntry struct {
	client *http.Client
	// files are the very slices the client was made from.
	files [3][]byte
}

func newClients(store *credentials.Store) *clients {
	return &clients{store: store, made: map[serverconfig.TLS]*clientEntry{}}
}

func (c *clients) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.made {
		e.client.CloseIdleConnections()
	}
}

// get gives the client for tls settings; nil means none.
func (c *clients) get(settings *serverconfig.TLS) (*http.Client, error) {
	var key serverconfig.TLS
	if settings != nil {
		key = *settings
	}
	files, err := c.load(key)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.made[key]
	if old != nil && same(old.files, files) {
		return old.client, nil
	}
	config, err := tlsConfig(key, files)
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.client.CloseIdleConnections()
	}
	fresh := &clientEntry{client: newClient(config, key != serverconfig.TLS{}), files: files}
	c.made[key] = fresh
	return fresh.client, nil
}

func (c *clients) load(key serverconfig.TLS) (files [3][]byte, err error) {
	for i, path := range []string{key.CAFile, key.CertFile, key.KeyFile} {
		if path == "" {
			continue
		}
		if files[i], err = c.store.Bytes(path); err != nil {
			return files, credentialFailure(err)
		}
	}
	return files, nil
}

// same compares slices by identity: the store gives the same one as long as
// the file stays.
func same(a, b [3][]byte) bool {
	for i := range a {
		if len(a[i]) != len(b[i]) || len(a[i]) > 0 && &a[i][0] != &b[i][0] {
			return false
		}
	}
	return true
}

func tlsConfig(key serverconfig.TLS, files [3][]byte) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: key.ServerName}
	if key.CAFile != "" {
		config.RootCAs = x509.NewCertPool()
		if key.System {
			if system, err := x509.SystemCertPool(); err == nil {
				config.RootCAs = system
			}
		}
		if !config.RootCAs.AppendCertsFromPEM(files[0]) {
			return nil, call.Fail(call.CredentialMissing, "the mounted CA holds no certificate")
		}
	}
	if key.CertFile != "" || key.KeyFile != "" {
		pair, err := tls.X509KeyPair(files[1], files[2])
		if err != nil {
			return nil, call.Fail(call.CredentialMissing, "the mounted client certificate and its key cannot be used")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// newClient tunes a client for many calls to few hosts. bound: its TLS
// settings are made for one origin, so that no other is followed to.
func newClient(config *tls.Config, bound bool) *http.Client {
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  clusterhost.Proxy(http.ProxyFromEnvironment),
			DialContext:            dialer.DialContext,
			TLSClientConfig:        config,
			TLSHandshakeTimeout:    handshakeLimit,
			ForceAttemptHTTP2:      true,
			MaxIdleConns:           idleTotal,
			MaxIdleConnsPerHost:    idlePerHost,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderOfBack,
		},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			return checkRedirect(request, via, bound)
		},
	}
}

// checkRedirect follows within the origin. To another one it follows only
// what carries nothing: no header of ours (a credential may be in any), no
// body, no client certificate, no Referer, never from https to http, never to
// an address of this very pod or link.
func checkRedirect(request *http.Request, via []*http.Request, bound bool) error {
	if len(via) >= maxRedirects {
		return http.ErrUseLastResponse
	}
	crossed := false
	for _, earlier := range via {
		crossed = crossed || !sameOrigin(earlier.URL, request.URL)
	}
	if !crossed {
		return nil
	}
	safe := request.Method == http.MethodGet || request.Method == http.MethodHead
	downgrade := via[0].URL.Scheme == "https" && request.URL.Scheme != "https"
	inward := IsLocalHost(request.URL.Hostname()) && !IsLocalHost(via[0].URL.Hostname())
	if bound || !safe || downgrade || inward {
		return http.ErrUseLastResponse
	}
	kept := http.Header{}
	for _, name := range []string{"Accept", "User-Agent"} {
		if v := request.Header.Get(name); v != "" {
			kept.Set(name, v)
		}
	}
	request.Header = kept //nolint:gosec // less than was there, nothing that tells of us
	request.URL.User = nil
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// IsLocalHost reports whether a host is this very pod or its link.
func IsLocalHost(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	address = address.Unmap()
	return address.IsLoopback() || address.IsLinkLocalUnicast() || address.IsUnspecified()
}
