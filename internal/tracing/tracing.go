// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tracing is what the operator and the shared server need of
// OpenTelemetry to make spans and to pass their context on. Without a tracer
// there are no spans, and nothing is passed on: who asks pays for one look at
// a pointer or at a context. Package otlp sends the spans.
//
// No span ever holds an argument, a header, a body, a credential or the words
// of a peer.
package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/espalier-dev/espalier"

// Keys of a W3C trace context, in _meta of MCP and, whatever their case, as
// headers of HTTP.
const (
	KeyTraceparent = "traceparent"
	KeyTracestate  = "tracestate"
)

// Headers of a W3C trace context in canonical form.
const (
	HeaderTraceparent = "Traceparent"
	HeaderTracestate  = "Tracestate"
)

// Bounds of what is read of a peer, in bytes. The standard's own examples of
// either are far below.
const (
	maxParent = 128
	maxState  = 1024
)

// Tracer makes spans. A nil one makes none.
type Tracer struct{ tracer trace.Tracer }

// New gives a tracer of a provider; nil for nil.
func New(provider trace.TracerProvider) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{provider.Tracer(Scope)}
}

// Start begins a span. The caller ends it. A nil tracer gives the context back
// with a span that records nothing.
func (t *Tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	if t == nil {
		return ctx, nothing
	}
	return t.tracer.Start(ctx, name, options...)
}

var nothing = trace.SpanFromContext(context.Background())

// On reports whether ctx has a span, if one that is not sampled. When tracing
// is off it never has.
func On(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// Within begins a span below the one of ctx, for who has asked On. The caller
// ends it.
func Within(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer(Scope).Start(ctx, name, trace.WithSpanKind(kind))
}

// Carry gives to the span of from, for what goes on apart from it.
func Carry(to, from context.Context) context.Context {
	span := trace.SpanFromContext(from)
	if !span.SpanContext().IsValid() {
		return to
	}
	return trace.ContextWithSpan(to, span)
}

// Failed marks a span as failed with one word of ours. No words of a peer
// stand in its description.
func Failed(span trace.Span, kind string) {
	span.SetAttributes(attribute.String("error.type", kind))
	span.SetStatus(codes.Error, "")
}

// Extract gives ctx with the trace context that a peer named, as its remote
// span. What is no trace context changes nothing.
func Extract(ctx context.Context, traceparent, tracestate string) context.Context {
	if traceparent == "" || len(traceparent) > maxParent {
		return ctx
	}
	if len(tracestate) > maxState {
		tracestate = "" // It is of no use in parts.
	}
	return w3c.Extract(ctx, pair{&traceparent, &tracestate})
}

// FromHeader gives ctx with the trace context of a request's headers. One that
// stands there several times is none.
func FromHeader(ctx context.Context, header http.Header) context.Context {
	parent := header[HeaderTraceparent]
	if len(parent) != 1 {
		return ctx
	}
	state := ""
	if values := header[HeaderTracestate]; len(values) == 1 {
		state = values[0]
	}
	return Extract(ctx, parent[0], state)
}

// Inject gives the trace context of ctx as it is sent; empty where there is
// none.
func Inject(ctx context.Context) (traceparent, tracestate string) {
	if !On(ctx) {
		return "", ""
	}
	var parent, state string // Apart: only they are kept on the heap.
	w3c.Inject(ctx, pair{&parent, &state})
	return parent, state
}

// IntoHeader writes the trace context of ctx, if there is one, into headers
// that name none.
func IntoHeader(ctx context.Context, header http.Header) {
	traceparent, tracestate := Inject(ctx)
	if traceparent == "" || header[HeaderTraceparent] != nil {
		return
	}
	header[HeaderTraceparent] = []string{traceparent}
	delete(header, HeaderTracestate)
	if tracestate != "" {
		header[HeaderTracestate] = []string{tracestate}
	}
}

var w3c propagation.TraceContext

// pair carries a trace context in two strings.
type pair struct{ parent, state *string }

func (p pair) of(key string) *string {
	switch key {
	case KeyTraceparent:
		return p.parent
	case KeyTracestate:
		return p.state
	}
	return new(string)
}

// Get implements propagation.TextMapCarrier.
func (p pair) Get(key string) string { return *p.of(key) }

// Set implements propagation.TextMapCarrier.
func (p pair) Set(key, value string) { *p.of(key) = value }

// Keys implements propagation.TextMapCarrier.
func (p pair) Keys() []string { return []string{KeyTraceparent, KeyTracestate} }
