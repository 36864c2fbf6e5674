// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// transport is one HTTP transport for one probe: its connections and its
// knowledge die with it, so that targets cannot influence each other.
type transport struct {
	*http.Transport
	// sawTLS: a peer that was spoken to in plain HTTP began like TLS.
	sawTLS atomic.Bool
	// askedCert: the server asked for a client certificate; answered: it
	// answered some request.
	askedCert, answered atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool
}

// keep wraps a new connection and notes it. net/http makes connections to
// their end although the request that wanted one has gone, and keeps them for
// the next; here there is no next once the probe is over.
func (t *transport) keep(conn net.Conn) (net.Conn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.shut {
		conn.Close()
		return nil, net.ErrClosed
	}
	if t.conns == nil {
		t.conns = map[net.Conn]bool{}
	}
	t.conns[conn] = true
	return &sniffConn{Conn: conn, transport: t}, nil
}

// close closes all connections, and those that are still being made when
// they are.
func (t *transport) close() {
	t.CloseIdleConnections()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut = true
	for conn := range t.conns {
		conn.Close()
	}
}

// refusesCert reports whether a lost connection is most likely the server's
// way to refuse the client certificate, or the lack of one. TLS 1.3 refuses
// after the handshake, and its alert races with what is written meanwhile.
func (t *transport) refusesCert() bool { return t.askedCert.Load() && !t.answered.Load() }

// RoundTrip is http.RoundTripper's.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.Transport.RoundTrip(req)
	if err == nil {
		t.answered.Store(true)
	}
	return resp, err
}

// newTransport makes the transport of t. addressOf maps the address that
// net/http would dial to the one that is dialled.
func (c *Client) newTransport(t Target, addressOf func(string) string) (*transport, error) {
	config, err := tlsConfig(t)
	if err != nil {
		return nil, err
	}
	tr := &transport{}
	pair := config.Certificates
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		tr.askedCert.Store(true)
		if len(pair) == 0 {
			return &tls.Certificate{}, nil
		}
		return &pair[0], nil
	}
	dialer := &net.Dialer{Control: c.opts.Policy.control, Timeout: t.Timeout}
	tr.Transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dial := dialer.DialContext
			if t.Dial != nil {
				dial = t.Dial
			}
			conn, err := dial(ctx, network, addressOf(address))
			if err != nil {
				return nil, err
			}
			return tr.keep(conn)
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    t.Timeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // bodies are inflated under our own bounds
		MaxResponseHeaderBytes: c.opts.Bounds.HeaderBytes,
	}
	if t.DialAddress == "" && t.Dial == nil {
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
	config, err := t.TLS.Config()
	if err == nil && config.ServerName == "" && t.Host != "" {
		config.ServerName = (&url.URL{Host: t.Host}).Hostname()
	}
	return config, err
}

// Config for a client of crypto/tls. The error holds nothing of the material.
func (t *TLS) Config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if len(t.CAPEM) > 0 {
		config.RootCAs = x509.NewCertPool()
		if t.System {
			if system, err := x509.SystemCertPool(); err == nil {
				config.RootCAs = system
			}
		}
		if !config.RootCAs.AppendCertsFromPEM(t.CAPEM) {
			return nil, errors.New("no certificate in the CA bundle")
		}
	}
	if len(t.CertPEM) > 0 || len(t.KeyPEM) > 0 {
		pair, err := tls.X509KeyPair(t.CertPEM, t.KeyPEM)
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
	begun     bool
	transport *transport
}

// Close is net.Conn's.
func (c *sniffConn) Close() error {
	c.transport.mu.Lock()
	delete(c.transport.conns, c.Conn)
	c.transport.mu.Unlock()
	return c.Conn.Close()
}

// Read is net.Conn's.
func (c *sniffConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if !c.begun && n > 0 {
		c.begun = true
		// A record of type alert (21) or handshake (22), major version 3.
		if (p[0] == 21 || p[0] == 22) && (n == 1 || p[1] == 3) {
			c.transport.sawTLS.Store(true)
		}
	}
	return n, err
}

// tracked is a request's context that notes how far its connection came, and
// whether it had served another request before.
func tracked(ctx context.Context, at *atomic.Int32, reused *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { at.Store(int32(phaseTLS)) },
		GotConn: func(info httptrace.GotConnInfo) {
			at.Store(int32(phaseConnected))
			reused.Store(info.Reused)
		},
	})
}

// closedBefore reports whether an error says that the peer closed the
// connection, by its end or by a reset.
func closedBefore(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, net.ErrClosed) || strings.Contains(err.Error(), "server closed idle connection")
}
