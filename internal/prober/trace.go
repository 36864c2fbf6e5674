// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// probe makes one exchange, within a span where there is a tracer. What its
// peer is asked carries the span's context.
func (p *Prober) probe(ctx context.Context, r *run, target mcpprobe.Target) mcpprobe.Report {
	if p.opts.Tracer == nil {
		return p.opts.Probe(ctx, target)
	}
	name := "probe"
	if r.reportOnly {
		name = "probe report"
	}
	ctx, span := p.opts.Tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	report := p.opts.Probe(ctx, target)
	span.SetAttributes(
		attribute.String("k8s.namespace.name", r.target.key.Namespace), attribute.String("espalier.name", r.target.key.Name),
		attribute.String("espalier.probe.outcome", string(report.Outcome)), attribute.String("espalier.probe.step", string(report.Step)),
		attribute.String("mcp.protocol.version", report.ProtocolVersion),
	)
	if report.HTTPStatus != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", report.HTTPStatus))
	}
	if report.Outcome != mcpprobe.Proved && report.Outcome != mcpprobe.AuthRequired {
		tracing.Failed(span, string(report.Outcome))
	}
	return report
}
