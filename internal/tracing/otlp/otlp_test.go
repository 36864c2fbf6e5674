// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package otlp

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const (
	envEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	envProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	envTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestWanted(t *testing.T) {
	const endpoint = "http://collector:4318"
	for name, c := range map[string]struct {
		env  []string
		on   bool
		says string
	}{
		"nothing":             {nil, false, ""},
		"endpoint":            {[]string{envEndpoint, endpoint}, true, ""},
		"endpoint of traces":  {[]string{envTracesEndpoint, endpoint}, true, ""},
		"exporter alone":      {[]string{envExporter, "otlp"}, true, ""},
		"none":                {[]string{envEndpoint, endpoint, envExporter, "none"}, false, ""},
		"disabled":            {[]string{envEndpoint, endpoint, envDisabled, "True"}, false, ""},
		"protocol":            {[]string{envEndpoint, endpoint, envProtocol, "http/protobuf"}, true, ""},
		"protocol for traces": {[]string{envEndpoint, endpoint, envProtocol, "grpc", envTracesProtocol, "http/protobuf"}, true, ""},
		"grpc":                {[]string{envEndpoint, endpoint, envProtocol, "grpc"}, false, envProtocol},
		"other exporter":      {[]string{envExporter, "zipkin"}, false, envExporter},
		"no URL":              {[]string{envEndpoint, "collector:4318"}, false, envEndpoint},
		"no host":             {[]string{envTracesEndpoint, "http:///v1/traces"}, false, envTracesEndpoint},
		"sampler":             {[]string{envEndpoint, endpoint, envSampler, "traceidratio"}, true, ""},
		"unknown sampler":     {[]string{envEndpoint, endpoint, envSampler, "sometimes"}, false, envSampler},
	} {
		on, err := wanted(env(c.env...))
		if err == nil && on != c.on || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v", name, on, err)
		}
	}
	if _, err := wanted(env(envEndpoint, "user:s3cret@collector")); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error tells the credential: %v", err)
	}
}

// TestDelivery: a span reaches a collector by OTLP over HTTP, with what
// describes the service, and what a collector answers stays out of what is
// told.
func TestDelivery(t *testing.T) {
	received := make(chan *collector.ExportTraceServiceRequest, 1)
	refuse := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := &collector.ExportTraceServiceRequest{}
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, request) != nil {
			t.Errorf("received %s, %v", r.URL.Path, err)
		}
		select {
		case <-refuse:
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, "peer's words")
		default:
			received <- request
		}
	}))
	defer server.Close()
	t.Setenv(envEndpoint, server.URL)
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=weather,service.version=9")
	told := make(chan string, 1)
	options := Options{Getenv: env(envEndpoint, server.URL), Service: "espalier-server", Version: "1.2.3", Instance: "weather-0", Undelivered: func(cause string) { told <- cause }}
	provider, err := Start(context.Background(), options)
	if err != nil {
		t.Fatal(err)
	}
	_, span := provider.Tracer().Start(context.Background(), "tools/call ping")
	span.End()
	provider.Close()
	got := (<-received).ResourceSpans[0]
	if name := got.ScopeSpans[0].Spans[0].Name; name != "tools/call ping" {
		t.Errorf("delivered %q", name)
	}
	described := map[string]string{}
	for _, a := range got.Resource.Attributes {
		described[a.Key] = a.Value.GetStringValue()
	}
	for key, want := range map[string]string{"service.name": "espalier-server", "service.version": "9", "service.instance.id": "weather-0", "team": "weather"} {
		if described[key] != want {
			t.Errorf("%s is %q, not %q", key, described[key], want)
		}
	}

	refuse <- true
	if provider, err = Start(context.Background(), options); err != nil {
		t.Fatal(err)
	}
	_, span = provider.Tracer().Start(context.Background(), "tools/call ping")
	span.End()
	provider.Close()
	if cause := <-told; cause != "the collector refused them" {
		t.Errorf("told %q", cause)
	}
	(*Provider)(nil).Close()
	if (*Provider)(nil).Tracer() != nil {
		t.Error("no provider has a tracer")
	}
}
