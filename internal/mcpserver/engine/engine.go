// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine answers MCP messages of both eras from a registry. It knows
// no transport: one hands it a decoded message and gets an answer, or lends it
// a stream.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/audit"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/metrics"
	"github.com/espalier-dev/espalier/internal/mcpserver/principal"
	"github.com/espalier-dev/espalier/internal/mcpserver/registry"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// Era is which half of the protocol's history a request belongs to.
type Era int

const (
	// Legacy revisions open with initialize.
	Legacy Era = iota
	// Modern revisions are stateless.
	Modern
)

// Status is how a transport that has statuses should mark an answer.
type Status int

const (
	// OK also marks errors that the protocol counts as ordinary answers.
	OK Status = iota
	// Accepted marks a notification, which has no answer.
	Accepted
	// BadRequest marks a request that breaks the protocol.
	BadRequest
	// NotFound marks an unknown method of the modern era.
	NotFound
	// TooManyRequests marks a limit reached outside of a call.
	TooManyRequests
	// Unauthorized marks a caller who has to say who they are.
	Unauthorized
	// Forbidden marks a caller who may not do this.
	Forbidden
	// Unavailable marks a server that drains or has no catalog.
	Unavailable
)

// Stream carries messages to the client of one request.
type Stream = session.Stream

// Request is one message with all that its transport knows of it.
type Request struct {
	// Snapshot is what lists and calls of this request are answered from.
	Snapshot *registry.Snapshot
	Era      Era
	Message  *wire.Message
	// Caller as the transport recognised them. Nil is nobody, who comes in
	// only where the catalog has no auth.
	Caller *principal.Principal
	// Session of a legacy client; nil where it has none.
	Session *session.Session
	// NewSession opens the session that initialize begins, where Session is
	// nil. Nil: the client gets none.
	NewSession func() (*session.Session, error)
	// Calls are the running requests that the client may cancel: of its
	// session, or of its connection. Nil: none.
	Calls *session.Calls
	// Open opens a stream to the client; no other answer may follow then.
	Open func() (Stream, error)
	// Streams: the client takes a stream as the answer to any request.
	Streams bool
	// ID names the request in logs; one is made where it is empty.
	ID string
	// Out is the buffer to which the answer is appended.
	Out []byte

	arguments map[string]any
	decoded   bool
	view      *access.View
	chosen    map[*registry.When]bool
	back      back
	seen      *seen
}

// Reply is the answer to a request.
type Reply struct {
	// Body is the JSON-RPC answer; empty for notifications.
	Body   []byte
	Status Status
	// Streamed says that all was sent on the stream.
	Streamed bool
	// Session that initialize began.
	Session *session.Session
	// Cancelled says that the client cancelled the request: it does not wait
	// for the answer.
	Cancelled bool
}

// Arguments are the decoded arguments of tools/call and prompts/get. They are decoded once.
func (r *Request) Arguments() (map[string]any, *wire.Error) {
	if r.decoded {
		return r.arguments, nil
	}
	raw := r.RawArguments()
	if raw == nil {
		r.arguments, r.decoded = map[string]any{}, true
		return r.arguments, nil
	}
	value, err := wire.Decode(raw)
	if err != nil {
		return nil, &wire.Error{Code: mcp.CodeInvalidParams, Message: "the arguments cannot be read: " + err.Error()}
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, &wire.Error{Code: mcp.CodeInvalidParams, Message: "arguments must be an object"}
	}
	r.arguments, r.decoded = object, true
	return object, nil
}

// RawArguments are the arguments as they were written, nil when absent.
func (r *Request) RawArguments() []byte {
	raw := r.Message.Params.Get("arguments")
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// Engine answers messages.
type Engine struct {
	registry   *registry.Registry
	sessions   *session.Registry
	follows    follows
	metrics    *metrics.Metrics
	log        *slog.Logger
	limits     *limits
	middleware []call.Middleware
	methods    map[string]method
	tracer     *tracing.Tracer
	audit      *audit.Log
}

// method is one method and the eras that have it.
type method struct {
	modern, legacy bool
	// session: legacy clients need one for it.
	session bool
	// asks: a modern client may be asked for more, and answer with the next.
	asks   bool
	handle func(e *Engine, ctx context.Context, r *Request) Reply
}

// open reports whether a request may use the method.
func (m method) open(r *Request) bool {
	if r.Era == Modern {
		return m.modern
	}
	return m.legacy && (!m.session || r.Session != nil)
}

// flaw says what is wrong with the form of a request; nil when nothing is.
func (m method) flaw(r *Request) *wire.Error {
	if !m.asks || r.Era != Modern {
		return nil
	}
	return answersFlaw(r.Message.Params)
}

// New gives an engine over a registry. middleware wraps calls, inside of the
// limits, in the order given.
func New(reg *registry.Registry, m *metrics.Metrics, log *slog.Logger, middleware ...call.Middleware) *Engine {
	e := &Engine{registry: reg, metrics: m, log: log, limits: newLimits(m, log), sessions: session.NewRegistry()}
	e.middleware = append([]call.Middleware{e.limits.calls}, middleware...)
	e.methods = map[string]method{
		mcp.MethodDiscover:            {modern: true, handle: (*Engine).discover},
		mcp.MethodInitialize:          {legacy: true, handle: (*Engine).initialize},
		mcp.MethodPing:                {legacy: true, handle: (*Engine).ping},
		mcp.MethodToolsList:           {modern: true, legacy: true, handle: (*Engine).listTools},
		mcp.MethodToolsCall:           {modern: true, legacy: true, asks: true, handle: (*Engine).callTool},
		mcp.MethodResourcesList:       {modern: true, legacy: true, handle: (*Engine).listResources},
		mcp.MethodResourceTemplates:   {modern: true, legacy: true, handle: (*Engine).listTemplates},
		mcp.MethodResourcesRead:       {modern: true, legacy: true, asks: true, handle: (*Engine).readResource},
		mcp.MethodPromptsList:         {modern: true, legacy: true, handle: (*Engine).listPrompts},
		mcp.MethodPromptsGet:          {modern: true, legacy: true, asks: true, handle: (*Engine).getPrompt},
		mcp.MethodComplete:            {modern: true, legacy: true, handle: (*Engine).complete},
		mcp.MethodSubscriptionsListen: {modern: true, handle: (*Engine).listen},
		mcp.MethodSubscribe:           {legacy: true, session: true, handle: (*Engine).subscribe},
		mcp.MethodUnsubscribe:         {legacy: true, session: true, handle: (*Engine).unsubscribe},
		mcp.MethodSetLevel:            {legacy: true, session: true, handle: (*Engine).setLevel},
	}
	reg.OnSwap(func(old, next *registry.Snapshot) {
		e.limits.configure(next.Config.Limits)
		if c := next.Config.Sessions; c != nil {
			e.sessions.Configure(int(c.Max), time.Duration(c.IdleSeconds)*time.Second)
		} else {
			e.sessions.Configure(0, 0)
		}
		e.forget(old, next)
	})
	return e
}

// OnAccessFailure is what the rules of a snapshot tell of their failures to.
func (e *Engine) OnAccessFailure(f access.Failure) { e.ruleFailed(f) }

// forget drops the metrics of withdrawn entries.
func (e *Engine) forget(old, next *registry.Snapshot) {
	if old == nil {
		return
	}
	for _, t := range old.Tools() {
		if !next.HasTool(t.Name) {
			e.metrics.Forget(t.Name)
		}
	}
	for _, p := range old.Prompts() {
		if !next.HasPrompt(p.Name) {
			e.metrics.ForgetEntry(call.Prompt.String(), p.Name)
			e.metrics.ForgetEntry(call.Completion.String(), p.Name)
		}
	}
	for _, r := range slices.Concat(old.Resources(), old.Templates()) {
		if !next.HasResource(r.Name) {
			e.metrics.ForgetEntry(call.Resource.String(), r.Name)
			e.metrics.ForgetEntry(call.Completion.String(), r.Name)
		}
	}
}

// Snapshot gives what is served now, nil when no catalog was loaded yet.
func (e *Engine) Snapshot() *registry.Snapshot { return e.registry.Snapshot() }

// Handle answers one message. It returns when the answer is complete; the
// bytes the message was read from are not used after that.
func (e *Engine) Handle(ctx context.Context, r *Request) Reply {
	if r.Message.ID == nil {
		return e.notified(r)
	}
	m, known := e.methods[r.Message.Method]
	if !known || !m.open(r) {
		status := OK
		if r.Era == Modern {
			status = NotFound
		}
		return r.fail(status, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: " + clip(r.Message.Method)})
	}
	if e.tracer != nil || e.audit != nil {
		return e.observed(ctx, m, r)
	}
	return e.dispatch(ctx, m, r)
}

// dispatch answers a request whose method is known and open to it.
func (e *Engine) dispatch(ctx context.Context, m method, r *Request) Reply {
	if reply, ok := e.admit(r); !ok {
		return reply
	}
	if flaw := m.flaw(r); flaw != nil {
		return r.fail(OK, flaw)
	}
	if r.Calls == nil || r.Message.Method == mcp.MethodInitialize {
		return m.handle(e, ctx, r)
	}
	if r.Session != nil && r.Message.Method != mcp.MethodPing {
		r.Session.Initialized() // Not every client says so.
	}
	ctx, done := r.Calls.Begin(ctx, r.Message.ID)
	defer done()
	reply := m.handle(e, ctx, r)
	reply.Cancelled = errors.Is(context.Cause(ctx), session.ErrCancelled)
	return reply
}

// fail answers with an error.
func (r *Request) fail(status Status, err *wire.Error) Reply {
	if r.seen != nil {
		r.seen.code = err.Code
	}
	return Reply{Body: wire.AppendError(r.Out, r.Message.ID, err), Status: status}
}

const maxShown = 200

// clip bounds what of a caller's words is sent back.
func clip(text string) string {
	if len(text) > maxShown {
		return text[:maxShown] + "…"
	}
	return text
}
