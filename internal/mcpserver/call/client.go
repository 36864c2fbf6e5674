// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrCannotAsk says that there is no way to ask the client of a call: it
// cannot be reached before the answer, or declared no capability for it.
var ErrCannotAsk = errors.New("the client cannot be asked")

// Client is the caller's side of a call, for handlers that ask back or have
// more to tell than the answer. It is used by no goroutine after the handler
// returned.
type Client interface {
	// Modern clients are asked by an answer (Result.Input) and call again;
	// legacy ones are sent requests with Ask.
	Modern() bool
	// Capabilities is the raw object that the client declared: in its
	// session, or in the request's _meta. "{}" when it declared none.
	Capabilities() json.RawMessage
	// Session identifies the client's session over all replicas; empty
	// without one.
	Session() string
	// Ask sends a request to a legacy client and waits for its result, a raw
	// object, or an *RPCAnswer that it gave in place of one. ErrCannotAsk
	// where there is no way.
	Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
	// LogLevel is the least level of log messages that the client wants, of
	// the protocol's words; empty for none.
	LogLevel() string
	// Notify sends a notification that belongs to the call. It is dropped
	// where there is no way.
	Notify(method string, params json.RawMessage)
}

// RPCAnswer is the error with which a client answered what it was asked.
type RPCAnswer struct { //nolint:errname // It is an answer first.
	Code    int
	Message string
	Data    json.RawMessage
}

func (e *RPCAnswer) Error() string { return e.Message }

// Input asks the caller for more, in place of a result; of the modern era.
type Input struct {
	// Requests is the raw object inputRequests; nil for none.
	Requests json.RawMessage
	// State is the raw string requestState that the caller hands back byte
	// for byte; nil for none.
	State json.RawMessage
}
