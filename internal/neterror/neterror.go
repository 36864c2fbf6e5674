// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package neterror says of an error of the network, or of net/http, what kind
// it is. The probe, the upstreams and the tools by HTTP each have words of
// their own for a kind. An error's text is never told: it may hold a URL or
// words of the peer.
package neterror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// Kind of an error.
type Kind int

// Kinds.
const (
	// Other: none of those below.
	Other Kind = iota
	// Name: the host's name does not resolve, or not in time.
	Name
	// Timeout: something took longer than it may.
	Timeout
	// Refused: nothing listens on the port.
	Refused
	// Unreachable: the network has no way to the address, or forbids it.
	Unreachable
	// Closed: the connection was closed or reset.
	Closed
	// Untrusted: no authority that is trusted signed the certificate, or it is
	// unsound in another way.
	Untrusted
	// Expired: the certificate is expired, or not valid yet.
	Expired
	// WrongName: the certificate is for another name.
	WrongName
	// ClientCertificate: the peer wants one, or another one.
	ClientCertificate
	// NotTLS: the peer does not speak TLS.
	NotTLS
	// TLS failed in another way.
	TLS
)

// IsTLS reports whether the handshake failed, in whatever way.
func (k Kind) IsTLS() bool { return k >= Untrusted }

// IsCertificate reports whether the peer's certificate is not accepted.
func (k Kind) IsCertificate() bool { return k == Untrusted || k == Expired || k == WrongName }

// Of gives the kind of an error that is not nil.
func Of(err error) Kind {
	var name *net.DNSError
	if errors.As(err, &name) {
		return Name
	}
	if kind := ofTLS(err); kind != Other {
		return kind
	}
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), errors.As(err, &network) && network.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN),
		errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EADDRNOTAVAIL):
		return Unreachable
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return Closed
	}
	return Other
}

func ofTLS(err error) Kind {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		op      *net.OpError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return NotTLS
	case errors.As(err, &host):
		return WrongName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return Expired
	case errors.As(err, &invalid) && invalid.Reason == x509.NameMismatch:
		return WrongName
	case errors.As(err, &unknown), errors.As(err, &verify), errors.As(err, &invalid):
		return Untrusted
	case errors.As(err, &op) && op.Op == "remote error":
		return ofAlert(op.Err)
	case saysTLS(err):
		return TLS
	}
	return Other
}

// ofAlert judges an alert of the peer. The type of alerts is not exported by
// crypto/tls; its texts are fixed.
func ofAlert(err error) Kind {
	if err == nil {
		return TLS
	}
	for _, text := range []string{
		"certificate required", "bad certificate", "unknown certificate", "unsupported certificate",
		"revoked certificate", "expired certificate", "access denied",
	} {
		if strings.HasPrefix(err.Error(), "tls: "+text) {
			return ClientCertificate
		}
	}
	return TLS
}

// saysTLS reports whether an error, or one that it wraps, is of crypto/tls,
// most of whose errors have no type. Only how a text begins counts: further on
// there may be words of the peer.
func saysTLS(err error) bool {
	if err == nil {
		return false
	}
	if strings.HasPrefix(err.Error(), "tls: ") {
		return true
	}
	switch wrapper := err.(type) { //nolint:errorlint // This is what walks the tree.
	case interface{ Unwrap() error }:
		return saysTLS(wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range wrapper.Unwrap() {
			if saysTLS(one) {
				return true
			}
		}
	}
	return false
}
