// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// traced makes one attempt within a span, where the call has one. Path and
// query are left out: arguments stand there.
func (h *httpHandler) traced(ctx context.Context, client *http.Client, p *prepared, limit int64, attempt int) (*answer, error) {
	if !tracing.On(ctx) {
		return h.attempt(ctx, client, p, limit)
	}
	ctx, span := tracing.Within(ctx, h.method, trace.SpanKindClient)
	defer span.End()
	got, err := h.attempt(ctx, client, p, limit)
	if !span.IsRecording() {
		return got, err
	}
	span.SetAttributes(attribute.String("http.request.method", h.method), attribute.String("server.address", p.url.Hostname()))
	if n, err := strconv.Atoi(port(p.url)); err == nil {
		span.SetAttributes(attribute.Int("server.port", n))
	}
	if attempt > 0 {
		span.SetAttributes(attribute.Int("http.request.resend_count", attempt))
	}
	var failure *call.Error
	switch {
	case errors.As(err, &failure):
		tracing.Failed(span, string(failure.Reason))
	case err != nil:
		tracing.Failed(span, string(call.BackendFailed))
	default:
		span.SetAttributes(attribute.Int("http.response.status_code", got.status))
		if got.status >= http.StatusBadRequest {
			tracing.Failed(span, strconv.Itoa(got.status))
		}
	}
	return got, err
}
