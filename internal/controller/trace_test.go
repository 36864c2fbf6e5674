// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/espalier-dev/espalier/internal/tracing"
)

// TestTrace: a pass is a span with one for each phase below it, and holds no
// word of an error.
func TestTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	failing := phase{"secrets", func(*MCPServerReconciler, context.Context, *serverScope) error { return errors.New("s3cr3t words") }}
	told := phase{"told", func(*MCPServerReconciler, context.Context, *serverScope) error {
		return &problem{reason: "ForeignObject", message: "s3cr3t words"}
	}}
	pass := reconcile.Func(func(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
		if err := told.runTraced(nil, ctx, nil); asProblem(err) == nil {
			t.Errorf("the problem became %v", err)
		}
		return reconcile.Result{}, failing.runTraced(nil, ctx, nil)
	})
	request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "team-a", Name: "web"}}
	if _, err := traced(tracer, "MCPServer", pass).Reconcile(context.Background(), request); err == nil {
		t.Error("the error was lost")
	}
	var got []string
	for _, s := range spans.GetSpans() {
		line := s.Name
		for _, a := range s.Attributes {
			line += " " + string(a.Key) + "=" + a.Value.String()
		}
		got = append(got, line)
		if s.Name != "reconcile MCPServer" && s.Parent.SpanID() != spans.GetSpans()[2].SpanContext.SpanID() {
			t.Errorf("%s is not within the pass", s.Name)
		}
		if s.Status.Description != "" || len(s.Events) > 0 {
			t.Errorf("%s has words of an error", s.Name)
		}
	}
	want := []string{
		"phase told error.type=ForeignObject",
		"phase secrets error.type=phase_error",
		"reconcile MCPServer espalier.kind=MCPServer k8s.namespace.name=team-a espalier.name=web error.type=reconcile_error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	spans.Reset()
	if _, err := traced(nil, "MCPServer", pass).Reconcile(context.Background(), request); err == nil || len(spans.GetSpans()) > 0 {
		t.Errorf("without a tracer: %v, %d spans", err, len(spans.GetSpans()))
	}
}
