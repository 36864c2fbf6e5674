// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package otlp sends spans by OTLP over HTTP, as the standard environment
// variables OTEL_* of OpenTelemetry say.
package otlp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/espalier-dev/espalier/internal/tracing"
)

// Options of sending spans.
type Options struct {
	// Getenv is os.Getenv.
	Getenv func(string) string
	// Service is what service.name is where the environment says nothing;
	// Instance is service.instance.id.
	Service, Version, Instance string
	// Undelivered is told in a word, without any of a peer's, why spans were
	// lost.
	Undelivered func(cause string)
}

// flushWithin is how long the last spans may take to be delivered.
const flushWithin = 5 * time.Second

// Provider makes spans and sends them. A nil one does neither.
type Provider struct{ sdk *sdktrace.TracerProvider }

// Tracer gives the tracer; nil for none.
func (p *Provider) Tracer() *tracing.Tracer {
	if p == nil {
		return nil
	}
	return tracing.New(p.sdk)
}

// Close sends what is left, for five seconds at most.
func (p *Provider) Close() {
	if p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
	defer cancel()
	_ = p.sdk.Shutdown(ctx) // What could not be delivered was told of.
}

// Start gives a provider as the environment wants it, nil when it wants none.
// The error says which variable is wrong; then there is none either.
func Start(ctx context.Context, options Options) (*Provider, error) {
	on, err := wanted(options.Getenv)
	if err != nil || !on {
		return nil, err
	}
	settings, err := exporterSettings(options.Getenv)
	if err != nil {
		return nil, err
	}
	exporter, err := otlptrace.New(ctx, newClient(settings))
	if err != nil {
		return nil, err
	}
	described, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithAttributes(
			attribute.String("service.name", options.Service), attribute.String("service.version", options.Version),
			attribute.String("service.instance.id", options.Instance),
		),
		resource.WithFromEnv(), // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win.
	)
	if err != nil {
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES cannot be read: it is key=value,key=value")
	}
	if options.Undelivered != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { options.Undelivered(causeOf(err)) }))
	}
	// The sampler, the sizes of batches and the limits of spans are read from
	// the environment by the SDK.
	return &Provider{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described))}, nil
}

// Values of OTEL_TRACES_SAMPLER.
var samplers = []string{
	"", "always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
}

// Variables that turn tracing on, or say how it is done.
const (
	envDisabled       = "OTEL_SDK_DISABLED"
	envExporter       = "OTEL_TRACES_EXPORTER"
	envTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	envSampler        = "OTEL_TRACES_SAMPLER"

	protocolHTTP = "http/protobuf"
)

// wanted reads whether spans are sent: an endpoint is named, or the exporter
// is.
func wanted(getenv func(string) string) (bool, error) {
	get := func(name string) string { return strings.TrimSpace(getenv(name)) }
	if strings.EqualFold(get(envDisabled), "true") {
		return false, nil
	}
	endpoint, name := exporterVariable(getenv, "ENDPOINT")
	switch exporter := get(envExporter); {
	case exporter == "none", exporter == "" && endpoint == "":
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("%s is otlp or none here, not %q", envExporter, exporter)
	}
	return true, checkSettings(getenv, endpoint, name)
}

// checkSettings refuses what the SDK would fall back from. name is the variable
// that has the endpoint; its value may hold a credential.
func checkSettings(getenv func(string) string, endpoint, name string) error {
	protocol, of := exporterVariable(getenv, "PROTOCOL")
	if protocol != "" && protocol != protocolHTTP {
		return fmt.Errorf("%s is %s here, not %q", of, protocolHTTP, protocol)
	}
	if endpoint != "" {
		u, err := url.Parse(endpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return fmt.Errorf("%s is a URL like http://collector:4318", name)
		}
	}
	if sampler := strings.TrimSpace(getenv(envSampler)); !slices.Contains(samplers, sampler) {
		return fmt.Errorf("%s is one of %s, not %q", envSampler, strings.Join(samplers[1:], ", "), sampler)
	}
	return nil
}

// causeOf puts an error of the SDK into a word: its own text may hold what the
// collector answered.
func causeOf(err error) string {
	var network *net.OpError
	var name *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.As(err, &name):
		return "the collector's name does not resolve"
	case errors.As(err, &network):
		return "the collector cannot be reached"
	}
	return "the collector refused them"
}
