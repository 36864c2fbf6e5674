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
	"strings"
	"syscall"
)

// phase is how far the connection of a request came.
type phase int32

const (
	phaseDial phase = iota
	phaseTLS
	phaseConnected
)

// networkFailure judges an error of the transport. Only its type counts; its
// text goes to Diagnostics. sawTLS: what the peer sent first looks like TLS.
func networkFailure(ctx context.Context, err error, step Step, at phase, sawTLS bool, headerLimit int64) *failure {
	f := &failure{step: step, cause: err.Error()}
	f.outcome, f.flaw = outcomeOf(ctx, err, sawTLS)
	if f.outcome == ResponseTooLarge && f.limit == 0 {
		f.limit = headerLimit
		var tooLarge tooLargeError
		if errors.As(err, &tooLarge) {
			f.limit = tooLarge.limit
		}
	}
	var encoding encodingError
	if errors.As(err, &encoding) {
		f.encoding = encoding.name
	}
	switch f.outcome {
	case DNSFailed, ConnectionRefused, Unreachable, ProbeDenied:
		f.step = StepDial
	case TLSUntrusted, TLSExpired, TLSWrongName, TLSClientCertificate, TLSNotOffered, TLSFailed:
		f.step = StepTLS
	case Timeout, ConnectionLost:
		switch at {
		case phaseDial:
			f.step = StepDial
		case phaseTLS:
			f.step = StepTLS
		}
	}
	return f
}

func outcomeOf(ctx context.Context, err error, sawTLS bool) (Outcome, Flaw) {
	var dns *net.DNSError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Canceled, ""
	case errors.Is(err, errDenied):
		return ProbeDenied, ""
	case errors.As(err, new(tooLargeError)):
		return ResponseTooLarge, ""
	case errors.As(err, new(encodingError)):
		return UnsupportedEncoding, ""
	case errors.As(err, &dns):
		return DNSFailed, ""
	}
	if outcome := tlsOutcome(err); outcome != "" {
		return outcome, ""
	}
	switch {
	case isTimeout(ctx, err):
		return Timeout, ""
	case errors.Is(err, syscall.ECONNREFUSED):
		return ConnectionRefused, ""
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN),
		errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EADDRNOTAVAIL):
		return Unreachable, ""
	case sawTLS:
		return TLSExpected, ""
	}
	return protocolOutcome(err)
}

// protocolOutcome judges what net/http has no types for.
func protocolOutcome(err error) (Outcome, Flaw) {
	text := err.Error()
	switch {
	case strings.Contains(text, "server response headers exceeded"), strings.Contains(text, "header list larger"):
		return ResponseTooLarge, ""
	case strings.Contains(text, "malformed"), strings.Contains(text, "unsupported transfer encoding"),
		strings.Contains(text, "invalid byte in chunk"), strings.Contains(text, "bad Content-Length"):
		return NotMCP, FlawNotHTTP
	case strings.Contains(text, "gzip: "), strings.Contains(text, "flate: "):
		return NotMCP, FlawNotJSON
	}
	return ConnectionLost, ""
}

func isTimeout(ctx context.Context, err error) bool {
	var netErr net.Error
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || (errors.As(err, &netErr) && netErr.Timeout())
}

// tlsOutcome tells the ways apart in which TLS fails; empty for another error.
func tlsOutcome(err error) Outcome {
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
		return TLSNotOffered
	case errors.As(err, &host):
		return TLSWrongName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return TLSExpired
	case errors.As(err, &invalid) && invalid.Reason == x509.NameMismatch:
		return TLSWrongName
	case errors.As(err, &unknown), errors.As(err, &verify), errors.As(err, &invalid):
		return TLSUntrusted
	case errors.As(err, &op) && op.Op == "remote error":
		return alertOutcome(err.Error())
	case strings.Contains(err.Error(), "tls: "):
		return TLSFailed
	}
	return ""
}

// alertOutcome judges an alert of the peer. The type of alerts is not
// exported by crypto/tls; its texts are fixed.
func alertOutcome(text string) Outcome {
	for _, s := range []string{
		"certificate required", "bad certificate", "unknown certificate", "unsupported certificate",
		"revoked certificate", "expired certificate", "access denied",
	} {
		if strings.Contains(text, "tls: "+s) {
			return TLSClientCertificate
		}
	}
	return TLSFailed
}

// bodyFailure judges an error while a body was read.
func bodyFailure(ctx context.Context, err error, step Step) *failure {
	if errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
		return &failure{outcome: ConnectionLost, step: step, cause: err.Error()}
	}
	return networkFailure(ctx, err, step, phaseConnected, false, 0)
}
