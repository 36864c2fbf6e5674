// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync/atomic"
)

// transport is one HTTP transport for one probe: its connections and its
// knowledge die with it, so that targets cannot influence each other.
type transport struct {
	*http.Transport
	// sawTLS: a peer that was spoken to in plain HTTP began like TLS.
	sawTLS atomic.Bool
}

// newTransport makes the transport of t. addressOf maps the address that
// net/http would dial to the one that is dialled.
func (c *Client) newTransport(t Target, addressOf func(string) string) (*transport, error) {
	config, err := tlsConfig(t)
	if err != nil {
		return nil, err
	}
	tr := &transport{}
	// net/http lets a connection be made to its end although the request that
	// wanted it has gone: without a limit of its own it would outlive the probe.
	dialer := &net.Dialer{Control: c.opts.Policy.control, Timeout: t.Timeout}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addressOf(address))
	}
	tr.Transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &sniffConn{Conn: conn, sawTLS: &tr.sawTLS}, nil
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    t.Timeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies are inflated under our own bounds
		MaxResponseHeaderBytes: c.opts.Bounds.HeaderBytes,
	}
	if t.DialAddress == "" {
		tr.Proxy = c.opts.Proxy
	}
	return tr, nil
}

// dialInstead gives DialAddress for every address.
func dialInstead(dialAddress string) func(string) string {
	return func(asked string) string {
		if dialAddress != "" {
			return dialAddress
		}
		return asked
	}
}

// dialHostInstead gives DialAddress's IP with the port that was asked for.
func dialHostInstead(dialAddress string) func(string) string {
	return func(asked string) string {
		to, err := netip.ParseAddrPort(dialAddress)
		if err != nil {
			return asked
		}
		_, port, err := net.SplitHostPort(asked)
		if err != nil {
			return asked
		}
		return net.JoinHostPort(to.Addr().String(), port)
	}
}

func tlsConfig(t Target) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.TLS.ServerName}
	if config.ServerName == "" && t.Host != "" {
		config.ServerName = (&url.URL{Host: t.Host}).Hostname()
	}
	if len(t.TLS.CAPEM) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(t.TLS.CAPEM) {
			return nil, errors.New("no certificate in the CA bundle")
		}
	}
	if len(t.TLS.CertPEM) > 0 || len(t.TLS.KeyPEM) > 0 {
		pair, err := tls.X509KeyPair(t.TLS.CertPEM, t.TLS.KeyPEM)
		if err != nil {
			return nil, errors.New("the client certificate and its key cannot be used")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// sniffConn notices a peer that begins with a TLS record. On an https URL it
// always does, and nobody asks.
type sniffConn struct {
	net.Conn
	begun  bool
	sawTLS *atomic.Bool
}

// Read is net.Conn's.
func (c *sniffConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		// A record of type alert (21) or handshake (22), major version 3.
		if (p[0] == 21 || p[0] == 22) && (n == 1 || p[1] == 3) {
			c.sawTLS.Store(true)
		}
	}
	return n, err
}

// tracked is a request's context that notes how far its connection came.
func tracked(ctx context.Context, at *atomic.Int32) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { at.Store(int32(phaseTLS)) },
		GotConn:           func(httptrace.GotConnInfo) { at.Store(int32(phaseConnected)) },
	})
}
