// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe

import "net/http"

// failure is the end of an exchange that did not go well, in the words of
// Report. It is no error: it carries nothing that may not be shown, but for
// words and cause, which go to Diagnostics.
type failure struct {
	outcome   Outcome
	step      Step
	flaw      Flaw
	status    int
	rpc       *rpcError
	mediaType string
	encoding  string
	limit     int64
	offered   []string
	words     string
	cause     string
}

// final reports whether another request to the same endpoint would be
// pointless: it is not the request that was wrong.
func (f *failure) final() bool {
	switch f.outcome {
	case Canceled, InvalidTarget, ProbeDenied, TokenFailed, DNSFailed, ConnectionRefused, Unreachable, Redirected,
		TLSUntrusted, TLSExpired, TLSWrongName, TLSClientCertificate, TLSNotOffered, TLSExpected, TLSFailed:
		return true
	case Timeout:
		return f.step == StepDial || f.step == StepTLS
	}
	return false
}

// older reports whether a server refuses like this that knows HTTP with SSE
// alone; the statuses are those that the specification names.
func (f *failure) older() bool {
	return (f.outcome == UnexpectedStatus || f.outcome == HandshakeRejected) &&
		(f.status == http.StatusBadRequest || f.status == http.StatusNotFound || f.status == http.StatusMethodNotAllowed)
}

// modern reports whether only a server of the modern era fails like this.
func (f *failure) modern() bool {
	return (f.rpc != nil && f.rpc.isModern()) || (f.outcome == UnsupportedProtocol && f.step == StepDiscover)
}

// atBound reports whether f is a bound of the probe rather than a fault of
// what was read.
func (f *failure) atBound() bool {
	return f.outcome == Timeout || f.outcome == ResponseTooLarge
}

// into writes f into r.
func (f *failure) into(r *Report) {
	r.Outcome, r.Step, r.Flaw = f.outcome, f.step, f.flaw
	r.HTTPStatus, r.MediaType, r.Encoding, r.Limit = f.status, f.mediaType, f.encoding, f.limit
	if f.rpc != nil {
		r.RPCCode = f.rpc.code
	}
	r.Offered = f.offered
	r.Diagnostics = Diagnostics{PeerWords: f.words, Cause: f.cause}
}
