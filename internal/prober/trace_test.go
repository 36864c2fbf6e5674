// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/espalier-dev/espalier/internal/tracing"
)

// TestTrace: each probe is a span that says whom it was of and what came of it.
func TestTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewInMemoryExporter()
		w := newWorld(t, func(o *Options) {
			o.Tracer = tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
		})
		w.set("b", gives(refused()))
		w.p.Ensure(key, spec(pod("a"), pod("b")))
		w.until(time.Second)
		w.stop()
		outcomes := map[string]int{}
		for _, s := range spans.GetSpans() {
			found := map[string]string{}
			for _, a := range s.Attributes {
				found[string(a.Key)] = a.Value.String()
			}
			outcome := found["espalier.probe.outcome"]
			outcomes[outcome]++
			if s.Name != "probe" || found["k8s.namespace.name"] != key.Namespace || found["espalier.name"] != key.Name || (s.Status.Code == codes.Error) != (outcome != "Proved") {
				t.Errorf("%s has %v, %v", s.Name, found, s.Status)
			}
		}
		if diff := cmp.Diff(map[string]int{"Proved": 1, "ConnectionRefused": 1}, outcomes); diff != "" {
			t.Errorf("outcomes (-want +got):\n%s", diff)
		}
	})
}
