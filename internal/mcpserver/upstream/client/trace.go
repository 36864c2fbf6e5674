// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// traced sends a request within a span, where the call that it is made for has
// one. The span's context goes with it: in _meta of the message, and in headers
// for who sees only those.
func (s *Session) traced(ctx context.Context, r *Request, m *message) ([]byte, error) {
	if !tracing.On(ctx) {
		return s.carrier.request(ctx, m)
	}
	name := r.Method
	var of []attribute.KeyValue
	switch r.Method {
	case mcp.MethodToolsCall:
		name += " " + r.Name
		of = append(of, attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", r.Name))
	case mcp.MethodPromptsGet:
		name += " " + r.Name
		of = append(of, attribute.String("gen_ai.prompt.name", r.Name))
	}
	ctx, span := tracing.Within(ctx, name, trace.SpanKindClient)
	m.traceparent, m.tracestate = tracing.Inject(ctx)
	m.meta = addMember(m.meta, tracing.KeyTraceparent, wire.AppendString(nil, m.traceparent))
	if m.tracestate != "" {
		m.meta = addMember(m.meta, tracing.KeyTracestate, wire.AppendString(nil, m.tracestate))
	}
	if span.IsRecording() {
		span.SetAttributes(append(of, s.described(r, m)...)...)
	}
	result, err := s.carrier.request(ctx, m)
	endSpan(span, r, result, err)
	return result, err
}

// described are the attributes of a request that are known before its answer.
func (s *Session) described(r *Request, m *message) []attribute.KeyValue {
	out := []attribute.KeyValue{
		attribute.String("mcp.method.name", r.Method),
		attribute.String("mcp.protocol.version", s.revision.version),
		attribute.String("jsonrpc.request.id", strconv.FormatInt(m.id, 10)),
	}
	if s.options.Process != nil {
		return append(out, attribute.String("network.transport", "pipe"))
	}
	out = append(out, attribute.String("network.transport", "tcp"))
	if u, err := url.Parse(s.options.URL); err == nil {
		out = append(out, attribute.String("server.address", u.Hostname()))
		if port, err := strconv.Atoi(u.Port()); err == nil {
			out = append(out, attribute.Int("server.port", port))
		}
	}
	return out
}

// endSpan ends the span of a request. What the server says of an error stays
// out of it.
func endSpan(span trace.Span, r *Request, result []byte, err error) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	var rpc *RPCError
	switch {
	case errors.As(err, &rpc):
		code := strconv.Itoa(rpc.Code)
		span.SetAttributes(attribute.String("rpc.response.status_code", code))
		tracing.Failed(span, code)
	case err != nil:
		tracing.Failed(span, string(ReasonOf(err)))
	case r.Method == mcp.MethodToolsCall && string(member(result, "isError")) == "true":
		tracing.Failed(span, "tool_error")
	}
}
