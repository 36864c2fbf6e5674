// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestExtract(t *testing.T) {
	for name, c := range map[string]struct {
		parent, state, wantState string
		valid                    bool
	}{
		"whole":             {parent, "rojo=1,congo=2", "rojo=1,congo=2", true},
		"no state":          {parent, "", "", true},
		"none":              {"", "rojo=1", "", false},
		"zero id":           {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "", "", false},
		"upper case":        {strings.ToUpper(parent), "", "", false},
		"too long":          {parent + strings.Repeat("0", maxParent), "", "", false},
		"state too long":    {parent, "a=" + strings.Repeat("x", maxState), "", true},
		"state of no value": {parent, "rojo", "", true},
	} {
		got := trace.SpanContextFromContext(Extract(context.Background(), c.parent, c.state))
		if got.IsValid() != c.valid || got.TraceState().String() != c.wantState || c.valid && !got.IsRemote() {
			t.Errorf("%s: got %v, state %q", name, got.IsValid(), got.TraceState().String())
		}
	}
}

func TestHeader(t *testing.T) {
	ctx := FromHeader(context.Background(), http.Header{HeaderTraceparent: {parent}, HeaderTracestate: {"rojo=1"}})
	header := http.Header{HeaderTracestate: {"stale=1"}}
	IntoHeader(ctx, header)
	if header.Get("traceparent") != parent || header.Get("tracestate") != "rojo=1" {
		t.Errorf("passed on as %v", header)
	}
	declared := http.Header{HeaderTraceparent: {"declared"}}
	IntoHeader(ctx, declared)
	if declared.Get("traceparent") != "declared" || declared.Get("tracestate") != "" {
		t.Errorf("what is declared became %v", declared)
	}
	twice := FromHeader(context.Background(), http.Header{HeaderTraceparent: {parent, parent}})
	IntoHeader(twice, http.Header(nil)) // Nothing is written: there is no context.
	if trace.SpanContextFromContext(twice).IsValid() {
		t.Error("two headers make a context")
	}
}

// TestOff: without a tracer nothing begins, and it costs nothing.
func TestOff(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, 1)
	if allocations := testing.AllocsPerRun(100, func() {
		same, span := (*Tracer)(nil).Start(ctx, "a")
		if same != ctx || span.IsRecording() {
			t.Error("a span began")
		}
		if On(ctx) {
			t.Error("there is a span")
		}
		if parent, _ := Inject(ctx); parent != "" || Carry(ctx, ctx) != ctx {
			t.Error("a context is passed on")
		}
	}); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	if New(nil) != nil {
		t.Error("a tracer without a provider")
	}
}

// TestWithin: what was not sampled is passed on as such.
func TestWithin(t *testing.T) {
	tracer := New(sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())))
	ctx, span := tracer.Start(context.Background(), "outer")
	inner, below := Within(ctx, "inner", trace.SpanKindClient)
	if !On(ctx) || below.IsRecording() || below.SpanContext().TraceID() != span.SpanContext().TraceID() {
		t.Errorf("began %v", below.SpanContext())
	}
	if text, _ := Inject(inner); !strings.HasSuffix(text, "-00") {
		t.Errorf("passed on as %q", text)
	}
}
