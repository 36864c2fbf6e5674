// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package call holds what a call is made of (of a tool, the reading of a
// resource, the getting of a prompt), for handlers, middleware and the engine
// alike. It knows no transport and no catalog.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Kind is what is called.
type Kind int

// Kinds of calls.
const (
	// Tool: tools/call.
	Tool Kind = iota
	// Resource: resources/read.
	Resource
	// Prompt: prompts/get.
	Prompt
	// Completion: completion/complete, where an upstream answers it.
	Completion
)

// String is the kind as it stands in metrics and logs.
func (k Kind) String() string { return [...]string{"tool", "resource", "prompt", "completion"}[k] }

// Call is one call of one entry.
type Call struct {
	Kind Kind
	// Tool is the entry's identity on the wire: the name of a tool or prompt,
	// the URI or the URI template of a resource.
	Tool string
	// URI that was asked for, of a Resource.
	URI string
	// Args are the validated arguments, never nil. Handlers must not change
	// them.
	Args map[string]any
	// RawArgs is the object they were read from. It is valid only until the
	// handler returns.
	RawArgs []byte
	// Metadata classifies the tool; it never reaches the wire.
	Metadata map[string]string
	// Caller makes the call; never nil.
	Caller *principal.Principal
	// Entry gives the expression variables that describe the entry; nil is none.
	Entry func() map[string]any
	// MaxBytes bounds every hop that the call makes.
	MaxBytes int64
	// Read reads a resource of this server for the same caller; of a Prompt.
	Read func(ctx context.Context, uri string) (*Result, error)
	// Meta are the members of the request's _meta that are the caller's own,
	// raw and without braces; of a Tool. It is valid as long as RawArgs is.
	Meta []byte
	// Hops is through how many shared servers the call came; of a Tool.
	Hops int
	// Progress tells the caller of progress: params of the notification, but
	// for the token. It is nil when the caller asked for none, may be called
	// by several goroutines, and by none after the handler returned.
	Progress func(params wire.Object)
	// Client is who calls; nil where nothing can be asked of it or told it
	// before the answer.
	Client Client
	// Upstream that the call was passed on to, for who looks at it afterwards;
	// empty for none.
	Upstream string
	// Responses is the raw object inputResponses and State the raw string
	// requestState, with which a modern caller answers an Input; nil when
	// absent. They are valid as long as RawArgs is.
	Responses, State []byte
}

// Vars are the variables of expressions in the scope of a call.
func (c *Call) Vars() map[string]any {
	return map[string]any{"args": c.Args, "principal": c.Caller.Var()}
}

// Result is the answer to a call.
type Result struct {
	// Content is a JSON array: of a tool's content blocks, of a resource's
	// contents, of a prompt's messages; nil for none.
	Content json.RawMessage
	// Structured is any JSON value; nil for none.
	Structured json.RawMessage
	// Meta is a raw object for the result's _meta; nil for none. Keys of the
	// protocol and of ours are left out of it.
	Meta json.RawMessage
	// Extra are further members of the result, raw and without braces, as an
	// upstream gave them. None of them is one that the server writes itself.
	Extra json.RawMessage
	// TTL of a Resource, in milliseconds; nil where the source says nothing.
	TTL *int64
	// IsError marks an answer that tells of a failure.
	IsError bool
	// Input asks the caller for more; all else is empty then but Meta.
	Input *Input
}

// Handler runs calls of one entry. It stops soon after ctx ends. An error is
// shown to the caller as an isError result; a *Error says why in a word.
type Handler interface {
	Call(ctx context.Context, c *Call) (*Result, error)
}

// Func is a handler as a function.
type Func func(ctx context.Context, c *Call) (*Result, error)

// Call implements Handler.
func (f Func) Call(ctx context.Context, c *Call) (*Result, error) { return f(ctx, c) }

// Completer is a handler that answers completion/complete for its entry.
type Completer interface {
	// Complete gives the raw object completion. params are the members of the
	// request's params but for ref and _meta, raw and without braces.
	Complete(ctx context.Context, c *Call, params []byte) (*Result, error)
}

// Middleware wraps calls, never lists or handshakes.
type Middleware func(next Func) Func

// Chain wraps f so that the first middleware is the outermost.
func Chain(f Func, middleware ...Middleware) Func {
	for i := len(middleware) - 1; i >= 0; i-- {
		f = middleware[i](f)
	}
	return f
}

// Reason says in a word why the server could not give a tool's own answer.
type Reason string

// Reasons of a Error.
const (
	NoExecutor        Reason = "NoExecutor"
	InvalidArguments  Reason = "InvalidArguments"
	InvalidResult     Reason = "InvalidResult"
	ExpressionFailed  Reason = "ExpressionFailed"
	CredentialMissing Reason = "CredentialMissing"
	BackendFailed     Reason = "BackendFailed"
	BackendTimeout    Reason = "BackendTimeout"
	ResultTooLarge    Reason = "ResultTooLarge"
	CallTimeout       Reason = "CallTimeout"
	Cancelled         Reason = "Cancelled"
	Withdrawn         Reason = "Withdrawn"
	RateLimited       Reason = "RateLimited"
	BudgetExceeded    Reason = "BudgetExceeded"
	ConcurrencyLimit  Reason = "ConcurrencyLimit"
	StreamLimit       Reason = "StreamLimit"
	NotFound          Reason = "NotFound"
	Internal          Reason = "Internal"
	// UpstreamUnavailable: the server behind does not answer; UpstreamError:
	// it answered with an error of the protocol; HopLimit: the call came
	// through too many servers, most likely in a circle.
	UpstreamUnavailable Reason = "UpstreamUnavailable"
	UpstreamError       Reason = "UpstreamError"
	HopLimit            Reason = "HopLimit"
	// CannotAsk: the server behind has a question that this client cannot be
	// asked; QuestionExpired: the answer came too late, or to a server that is
	// gone.
	CannotAsk       Reason = "CannotAsk"
	QuestionExpired Reason = "QuestionExpired"
	// DeclaredError is an error of the protocol that middleware chose.
	DeclaredError Reason = "DeclaredError"
	// InputRequired: the call asks for more in a way that the client does not
	// know.
	InputRequired Reason = "InputRequired"
)

// Error is a failure that a model and a program can read.
type Error struct {
	Reason Reason
	// Message is shown to the caller: no credential, no address, bounded.
	Message string
	// Cause is for the log only; it may name addresses, never credentials.
	Cause error
	// RPC answers in place of a result: of a DeclaredError, or where the error
	// means something to the caller's program; else nil.
	RPC *RPCError
}

func (f *Error) Error() string { return f.Message }

// Because notes what the log should say of f.
func (f *Error) Because(cause error) *Error {
	f.Cause = cause
	return f
}

// Fail makes a Error.
func Fail(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RPCError answers a call by an error of the protocol in place of a result.
// Middleware may return one, where clients of a server know its codes; a
// handler's failure is a result that a model can read.
type RPCError struct {
	// Code is outside of -32768..-32000, which JSON-RPC and MCP reserve, or in
	// -32000..-32019, which the specification leaves to what existed before it
	// closed the range. Any other becomes a failure of the server.
	Code    int
	Message string
	// Data is any JSON value; nil for none.
	Data json.RawMessage
}

func (e *RPCError) Error() string { return e.Message }

// Allowed reports whether the code may be sent.
func (e *RPCError) Allowed() bool {
	return e.Code < -32768 || e.Code > -32020
}

// Causes with which a call's context ends.
var (
	ErrWithdrawn = errors.New("the tool was withdrawn")
	ErrTimeout   = errors.New("the call took too long")
)
