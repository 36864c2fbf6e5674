// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/process"
	"github.com/espalier-dev/espalier/internal/neterror"
)

// Reason says in a word why an upstream gave no answer. It may stand in a
// report and a status: it holds nothing of the peer's words.
type Reason string

// Reasons of an Error.
const (
	CredentialMissing   Reason = "CredentialMissing"
	TokenFailed         Reason = "TokenFailed"
	DNSFailed           Reason = "DNSFailed"
	ConnectionRefused   Reason = "ConnectionRefused"
	ConnectionLost      Reason = "ConnectionLost"
	TLSFailed           Reason = "TLSFailed"
	Timeout             Reason = "Timeout"
	AuthRequired        Reason = "UpstreamAuthRequired"
	AuthRejected        Reason = "AuthRejected"
	SessionLost         Reason = "SessionLost"
	Redirected          Reason = "Redirected"
	UnexpectedStatus    Reason = "UnexpectedStatus"
	NotMCP              Reason = "NotMCP"
	TooLarge            Reason = "ResponseTooLarge"
	UnsupportedProtocol Reason = "UnsupportedProtocol"
	HandshakeRejected   Reason = "HandshakeRejected"
	ListFailed          Reason = "ListFailed"
	ChildExited         Reason = "ChildExited"
	StartFailed         Reason = "StartFailed"
	Failed              Reason = "Failed"
	// Of an OpenAPI document: it cannot be read or is none; it does not say
	// where its API is; it names a server that must not get the credentials.
	InvalidDocument Reason = "InvalidDocument"
	NoServer        Reason = "NoServer"
	UntrustedServer Reason = "UntrustedServer"
)

// Phase is what an upstream was doing when it failed.
type Phase string

// Phases of an Error.
const (
	PhaseStart     Phase = "Start"
	PhaseHandshake Phase = "Handshake"
	PhaseList      Phase = "List"
	PhaseCall      Phase = "Call"
	PhaseServing   Phase = "Serving"
)

// Error is a failure of the way to an upstream, or of the upstream to keep to
// the protocol.
type Error struct {
	Reason Reason
	// Phase in which it happened; empty where that is not known.
	Phase Phase
	// Status of HTTP, 0 when there was none.
	Status int
	// Child is how it ended, with ChildExited, and StderrTruncated says that
	// it wrote more to stderr than is kept.
	Child           *process.State
	StderrTruncated bool
	// Cause is for the log only; it may name addresses.
	Cause error
}

func (e *Error) Error() string {
	text := string(e.Reason)
	if e.Status != 0 {
		text += " (HTTP " + strconv.Itoa(e.Status) + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }

// Message and Hint are fixed texts of the reason: what is, and what to do.
func (e *Error) Message() string { return explained[e.Reason].message }

// Hint says what to do.
func (e *Error) Hint() string { return explained[e.Reason].hint }

// inPhase notes the phase of an error that has none. The error itself may be
// another request's as well.
func inPhase(err error, phase Phase) error {
	known, ok := err.(*Error) //nolint:errorlint // An *Error that is wrapped is not this package's own.
	if !ok || known.Phase != "" {
		return err
	}
	noted := *known
	noted.Phase = phase
	return &noted
}

// RPCError is a JSON-RPC error that the upstream answered with.
type RPCError struct {
	Code    int
	Message string
	// Data is a raw value, nil for none.
	Data []byte
	// Status of HTTP, 0 when there was none.
	Status int
}

func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d", e.Code) }

// ErrorOf gives the *Error that err is, or one with its reason.
func ErrorOf(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Reason: ReasonOf(err), Cause: err}
}

// ReasonOf gives the word for err.
func ReasonOf(err error) Reason {
	var known *Error
	var rpc *RPCError
	switch {
	case errors.As(err, &known):
		return known.Reason
	case errors.As(err, &rpc):
		return HandshakeRejected
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Timeout
	}
	return Failed
}

// dialFailure: the request has not reached the upstream.
func dialFailure(err error) bool {
	switch ReasonOf(err) {
	case DNSFailed, ConnectionRefused, TLSFailed, CredentialMissing, TokenFailed:
		return true
	}
	return false
}

// NetworkError puts an error of net/http into an *Error.
func NetworkError(err error) error { return networkError(err) }

// networkError puts an error of net/http into a word.
func networkError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var token *call.Error // Why there is no token to send.
	if errors.As(err, &token) {
		return &Error{Reason: TokenFailed, Cause: token}
	}
	return &Error{Reason: networkReason(err), Cause: err}
}

func networkReason(err error) Reason {
	switch kind := neterror.Of(err); {
	case kind == neterror.Name:
		return DNSFailed
	case kind == neterror.Refused:
		return ConnectionRefused
	case kind.IsTLS():
		return TLSFailed
	case kind == neterror.Timeout:
		return Timeout
	}
	return ConnectionLost
}
