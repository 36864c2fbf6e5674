// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/tracing"
)

// traced gives each pass of a reconciler a span; without a tracer it is the
// reconciler itself. What an error says stays in the log.
func traced(tracer *tracing.Tracer, kind string, inner reconcile.Reconciler) reconcile.Reconciler {
	if tracer == nil {
		return inner
	}
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		ctx, span := tracer.Start(ctx, "reconcile "+kind, trace.WithAttributes(
			attribute.String("espalier.kind", kind), attribute.String("k8s.namespace.name", req.Namespace), attribute.String("espalier.name", req.Name),
		))
		defer span.End()
		result, err := inner.Reconcile(ctx, req)
		if err != nil {
			tracing.Failed(span, "reconcile_error")
		}
		return result, err
	})
}

// runTraced runs a phase within a span, where the pass has one.
func (p phase) runTraced(r *MCPServerReconciler, ctx context.Context, s *serverScope) error { //nolint:revive // As run has it.
	if !tracing.On(ctx) {
		return p.run(r, ctx, s)
	}
	ctx, span := tracing.Within(ctx, "phase "+p.name, trace.SpanKindInternal)
	defer span.End()
	err := p.run(r, ctx, s)
	if known := asProblem(err); known != nil {
		tracing.Failed(span, known.reason)
	} else if err != nil {
		tracing.Failed(span, "phase_error")
	}
	return err
}
