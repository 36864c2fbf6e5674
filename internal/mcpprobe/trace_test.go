// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// TestTraceContext: each request of a probe that has a span carries its
// context, and none of one that has none.
func TestTraceContext(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for want, ctx := range map[string]context.Context{
		parent: tracing.Extract(context.Background(), parent, ""), "": context.Background(),
	} {
		b := newBench(t, fakemcp.New())
		if r := b.probeWith(ctx); r.Outcome != mcpprobe.Proved {
			t.Fatalf("the probe came to %s", r.Outcome)
		}
		requests := b.fake.Requests()
		if len(requests) == 0 {
			t.Error("no request")
		}
		for _, r := range requests {
			if got := r.Header.Get("traceparent"); got != want {
				t.Errorf("%s %s carries %q, not %q", r.HTTP, r.Method, got, want)
			}
		}
	}
}
