// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package serving is the server's own certificate: what the port that clients
// call shows, and how the replicas verify each other. Files are read live, so
// that a rotated certificate is shown to the next connection.
package serving

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver/credentials"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// ErrNoCertificate says that there was no usable certificate yet.
var ErrNoCertificate = errors.New("no usable certificate is mounted")

// maxPast certificates of this replica are remembered.
const maxPast = 3

// Keeper keeps the certificate. It is safe for concurrent use.
type Keeper struct {
	store *credentials.Store
	// settings gives what the catalog in place says; nil is no TLS.
	settings func() *serverconfig.ServingTLS
	log      *slog.Logger
	now      func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	// from are the bytes that were looked at last, usable or not.
	from [2][]byte
	// past are leaves that were shown before, newest first.
	past [][]byte
}

// New gives a keeper. Wanted reports whether TLS is spoken at the moment.
func New(store *credentials.Store, settings func() *serverconfig.ServingTLS, log *slog.Logger) *Keeper {
	return &Keeper{store: store, settings: settings, log: log, now: time.Now}
}

// Wanted reports whether the catalog in place wants TLS.
func (k *Keeper) Wanted() bool { return k.settings() != nil }

// Ready reports whether there is a certificate where one is wanted.
func (k *Keeper) Ready() bool {
	if !k.Wanted() {
		return true
	}
	_, err := k.certificate()
	return err == nil
}

// Listen makes connections of l speak TLS for as long as the catalog in place
// wants it. Before there is a catalog nobody is served anyway.
func (k *Keeper) Listen(l net.Listener) net.Listener { return &listener{l, k} }

type listener struct {
	net.Listener
	keeper *Keeper
}

// Accept waits for the next connection. Its handshake is the reader's.
func (l *listener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil || !l.keeper.Wanted() {
		return connection, err
	}
	return tls.Server(connection, l.keeper.server()), nil
}

// server is the configuration of the port. HTTP/2 is not offered: a WebSocket
// and streams that are passed on to another replica want a connection each.
func (k *Keeper) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return k.certificate() },
		// A resumed session would be one of the certificate before.
		SessionTicketsDisabled: true,
	}
}

// certificate is the newest usable one. One that cannot be used, or that is
// gone, leaves the one before in place: nothing is gained by speaking to
// nobody.
func (k *Keeper) certificate() (*tls.Certificate, error) {
	settings := k.settings()
	if settings == nil {
		return nil, ErrNoCertificate
	}
	cert, errCert := k.store.Bytes(settings.CertFile)
	key, errKey := k.store.Bytes(settings.KeyFile)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := errors.Join(errCert, errKey); err != nil {
		if k.current == nil {
			return nil, ErrNoCertificate
		}
		return k.current, nil
	}
	if bytes.Equal(k.from[0], cert) && bytes.Equal(k.from[1], key) {
		if k.current == nil {
			return nil, ErrNoCertificate
		}
		return k.current, nil
	}
	k.from = [2][]byte{cert, key}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		// Its text may hold parts of neither: they are fixed words of crypto/tls.
		k.log.Warn("The mounted certificate and key cannot be used", "inUse", k.current != nil, "error", err.Error())
		if k.current == nil {
			return nil, ErrNoCertificate
		}
		return k.current, nil
	}
	if k.current != nil {
		k.past = append([][]byte{k.current.Certificate[0]}, k.past[:min(len(k.past), maxPast-1)]...)
	}
	k.current = &pair
	k.log.Info("Certificate loaded", "notAfter", pair.Leaf.NotAfter.UTC().Format(time.RFC3339), "expired", k.now().After(pair.Leaf.NotAfter))
	return k.current, nil
}

// Client is how another replica is called, whose port is found by address: by
// the authorities of the catalog, or by the very certificate that this replica
// shows or has shown.
func (k *Keeper) Client() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		// VerifyConnection does more, not less.
		InsecureSkipVerify: true, //nolint:gosec // See above.
		VerifyConnection:   k.verify,
	}
}

func (k *Keeper) verify(state tls.ConnectionState) error {
	settings := k.settings()
	if settings == nil || len(state.PeerCertificates) == 0 {
		return ErrNoCertificate
	}
	if k.shown(state.PeerCertificates[0].Raw) {
		return nil
	}
	ca, err := k.store.Bytes(settings.CAFile)
	if err != nil {
		return err
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), DNSName: settings.ServerName, CurrentTime: k.now()}
	options.Roots.AppendCertsFromPEM(ca)
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err = state.PeerCertificates[0].Verify(options)
	return err
}

// shown reports whether leaf is, or was, this replica's own.
func (k *Keeper) shown(leaf []byte) bool {
	if current, err := k.certificate(); err == nil && bytes.Equal(current.Certificate[0], leaf) {
		return true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, old := range k.past {
		if bytes.Equal(old, leaf) {
			return true
		}
	}
	return false
}
