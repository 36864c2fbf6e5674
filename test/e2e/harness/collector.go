// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// Collector is a pod of test/fixtures/collector behind a Service: it stands in
// for an OpenTelemetry collector.
type Collector struct {
	// URL of the Service, for pods.
	URL string
	pod string
}

// Span as the collector shows it. IDs are in hex.
type Span struct {
	Service    string            `json:"service"`
	Trace      string            `json:"trace"`
	ID         string            `json:"id"`
	Parent     string            `json:"parent"`
	Name       string            `json:"name"`
	Kind       string            `json:"kind"`
	Attributes map[string]string `json:"attributes"`
}

// Collector starts one and waits until it takes traffic.
func (n *Namespace) Collector(ctx context.Context) *Collector {
	GinkgoHelper()
	const name = "collector"
	deployment, service := Workload(name, CollectorImage, 4318)
	n.Create(ctx, deployment, service)
	n.AwaitRollout(ctx, name, ReadyTimeout)
	n.AwaitService(ctx, name)
	return &Collector{
		URL: fmt.Sprintf("http://%s.%s.svc", name, n.Name),
		pod: "http://" + n.PodsOfApp(ctx, name)[0].Status.PodIP + ":4318",
	}
}

// Environment has a program send its spans to the collector, soon after each ends.
func (c *Collector) Environment() []corev1.EnvVar {
	return []corev1.EnvVar{
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: c.URL},
		{Name: "OTEL_BSP_SCHEDULE_DELAY", Value: "200"},
	}
}

// Traced makes a server send its spans to a collector, under its own name.
func Traced(c *Collector) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		s.Spec.Workload.Env = append(s.Spec.Workload.Env, c.Environment()...)
		s.Spec.Workload.Env = append(s.Spec.Workload.Env, corev1.EnvVar{Name: "OTEL_SERVICE_NAME", Value: s.Name})
	}
}

// Spans are those that the collector took, oldest first.
func (c *Collector) Spans(ctx context.Context) ([]Span, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.pod+"/spans", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out []Span
	return out, json.NewDecoder(resp.Body).Decode(&out)
}
