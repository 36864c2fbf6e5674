// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/espalier-dev/espalier/internal/neterror"
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
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Canceled, ""
	case errors.Is(err, errDenied):
		return ProbeDenied, ""
	case errors.As(err, new(tooLargeError)):
		return ResponseTooLarge, ""
	case errors.As(err, new(encodingError)):
		return UnsupportedEncoding, ""
	}
	kind := neterror.Of(err)
	if outcome, ok := outcomes[kind]; ok && (kind == neterror.Name || kind.IsTLS()) {
		return outcome, ""
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Timeout, "" // Whatever the connection says, it was closed for that.
	}
	if outcome, ok := outcomes[kind]; ok {
		return outcome, ""
	}
	if sawTLS {
		return TLSExpected, ""
	}
	return protocolOutcome(err)
}

// outcomes of errors that need no further look.
var outcomes = map[neterror.Kind]Outcome{
	neterror.Name: DNSFailed, neterror.Timeout: Timeout, neterror.Refused: ConnectionRefused, neterror.Unreachable: Unreachable,
	neterror.Untrusted: TLSUntrusted, neterror.Expired: TLSExpired, neterror.WrongName: TLSWrongName,
	neterror.ClientCertificate: TLSClientCertificate, neterror.NotTLS: TLSNotOffered, neterror.TLS: TLSFailed,
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

// bodyFailure judges an error while a body was read.
func bodyFailure(ctx context.Context, err error, step Step) *failure {
	if errors.Is(err, io.ErrUnexpectedEOF) && ctx.Err() == nil {
		return &failure{outcome: ConnectionLost, step: step, cause: err.Error()}
	}
	return networkFailure(ctx, err, step, phaseConnected, false, 0)
}
