// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// seen is what was found out of a request, for who tells of it afterwards. It
// holds names of the catalog and words of ours, none of the caller's. A request
// of which nobody tells has none.
type seen struct {
	// kind and entry are what was called; entry is empty when it is not served.
	kind     call.Kind
	entry    string
	metadata map[string]string
	upstream string
	// outcome is that of the metrics; empty where the method has none.
	outcome string
	// code of an error that was answered; 0 for none.
	code int
	// span of the request; none while tracing is off.
	span trace.SpanContext
}

// refused notes why a request was refused before it was a call.
func (s *seen) refused(reason string) {
	if s != nil {
		s.outcome = reason
	}
}

// unknown notes that what was called is not served.
func (s *seen) unknown() {
	if s != nil {
		s.outcome = outcomeUnknown
	}
}

// called notes what a call was of, and its outcome.
func (s *seen) called(c *call.Call, outcome string) {
	if s != nil {
		s.kind, s.entry, s.metadata, s.upstream, s.outcome = c.Kind, c.Tool, c.Metadata, c.Upstream, outcome
	}
}

// Trace has requests make spans. It is called before the first of them.
func (e *Engine) Trace(tracer *tracing.Tracer) { e.tracer = tracer }

// callMethods run what may do anything. All other methods are answered from
// memory and asked often: a trace of theirs is worth something only to a caller
// that has one.
var callMethods = map[string]bool{
	mcp.MethodToolsCall: true, mcp.MethodResourcesRead: true, mcp.MethodPromptsGet: true, mcp.MethodComplete: true,
}

// untraced methods say nothing, or last as long as their client.
var untraced = map[string]bool{mcp.MethodPing: true, mcp.MethodSubscriptionsListen: true}

// observed answers a request and tells of it: by a span, and by a line of the
// audit log.
func (e *Engine) observed(ctx context.Context, m method, r *Request) Reply {
	if e.audit == nil || !callMethods[r.Message.Method] {
		if e.tracer == nil {
			return e.dispatch(ctx, m, r)
		}
		return e.traced(ctx, m, r)
	}
	r.seen = &seen{}
	began := time.Now()
	defer func() { e.record(r, began) }()
	if e.tracer == nil {
		return e.dispatch(ctx, m, r)
	}
	return e.traced(ctx, m, r)
}

// traced answers a request within a span. Its parent is what _meta names, as
// the conventions of OpenTelemetry for MCP have it; the context of the HTTP
// request is its parent where _meta names none, else linked.
func (e *Engine) traced(ctx context.Context, m method, r *Request) Reply {
	outer := trace.SpanContextFromContext(ctx)
	ctx = fromMeta(ctx, r.Message.Meta)
	parent := trace.SpanContextFromContext(ctx)
	if untraced[r.Message.Method] || !parent.IsValid() && !callMethods[r.Message.Method] {
		return e.dispatch(ctx, m, r)
	}
	options := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attribute.String("mcp.method.name", r.Message.Method)),
	}
	if outer.IsValid() && !outer.Equal(parent) {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: outer}))
	}
	ctx, span := e.tracer.Start(ctx, r.Message.Method, options...)
	if r.seen == nil {
		r.seen = &seen{}
	}
	r.seen.span = span.SpanContext()
	defer span.End()
	reply := e.dispatch(ctx, m, r)
	if span.IsRecording() {
		e.describe(span, r)
	}
	return reply
}

// fromMeta gives ctx with the trace context that _meta names, if it does.
func fromMeta(ctx context.Context, meta wire.Object) context.Context {
	traceparent, ok := meta.Text(tracing.KeyTraceparent)
	if !ok {
		return ctx
	}
	tracestate, _ := meta.Text(tracing.KeyTracestate)
	return tracing.Extract(ctx, traceparent, tracestate)
}

// describe writes what was found out of a request onto its span. The id of a
// session is left out: who has it is in that session. So is a URI that a caller
// made from a template: it holds arguments.
func (e *Engine) describe(span trace.Span, r *Request) {
	s := r.seen
	add := func(key, value string) {
		if value != "" {
			span.SetAttributes(attribute.String(key, value))
		}
	}
	if s.entry != "" {
		switch s.kind {
		case call.Tool:
			span.SetName(r.Message.Method + " " + s.entry)
			add("gen_ai.operation.name", "execute_tool")
			add("gen_ai.tool.name", s.entry)
		case call.Prompt:
			span.SetName(r.Message.Method + " " + s.entry)
			add("gen_ai.prompt.name", s.entry)
		case call.Resource:
			add("mcp.resource.uri", s.entry)
		}
	}
	id, isText := wire.Text(r.Message.ID)
	if !isText {
		id = string(r.Message.ID)
	}
	add("jsonrpc.request.id", id)
	add("mcp.protocol.version", r.version())
	add("espalier.server", r.Snapshot.Config.Server.Name)
	add("espalier.principal.kind", string(r.caller().Kind))
	add("espalier.cost_category", s.metadata[costCategory])
	add("espalier.upstream", s.upstream)
	add("espalier.outcome", s.outcome)
	if s.code != 0 {
		add("rpc.response.status_code", strconv.Itoa(s.code))
		tracing.Failed(span, strconv.Itoa(s.code))
	} else if s.outcome != "" && s.outcome != outcomeOK && s.outcome != outcomeInput {
		tracing.Failed(span, toolError)
	}
}

// toolError is the type of error of a result that tells of one.
const toolError = "tool_error"

// version of the protocol that a request is of; empty where it names none.
func (r *Request) version() string {
	if r.Era == Modern {
		version, _ := r.Message.Meta.Text(mcp.MetaProtocolVersion)
		return version
	}
	if r.Session != nil {
		return r.Session.Version()
	}
	return ""
}

// handling gives inner a span of its own, so that what limits and middleware
// took can be told from what the entry did.
func handling(inner call.Func) call.Func {
	return func(ctx context.Context, c *call.Call) (*call.Result, error) {
		if !tracing.On(ctx) {
			return inner(ctx, c)
		}
		ctx, span := tracing.Within(ctx, handlingName(c), trace.SpanKindInternal)
		defer span.End()
		result, err := inner(ctx, c)
		var failure *call.Error
		switch {
		case errors.As(err, &failure):
			tracing.Failed(span, string(failure.Reason))
		case err != nil && ctx.Err() != nil:
			tracing.Failed(span, string(call.Cancelled))
		case err != nil:
			tracing.Failed(span, string(call.Internal))
		case result.IsError:
			tracing.Failed(span, toolError)
		}
		return result, err
	}
}

func handlingName(c *call.Call) string {
	switch c.Kind {
	case call.Tool:
		return "execute_tool " + c.Tool
	case call.Prompt:
		return "handle prompt " + c.Tool
	default:
		return "handle " + c.Kind.String()
	}
}
