// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package refusals

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/rest"
)

// world is a server that answers with status and body, and a client through a
// Refusals.
type world struct {
	*testing.T
	status   int
	body     string
	refusals *Refusals
	log      bytes.Buffer
	registry *prometheus.Registry
	client   *http.Client
	url      string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, status: http.StatusOK, registry: prometheus.NewRegistry()}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(w.status)
		_, _ = io.WriteString(out, w.body)
	}))
	t.Cleanup(server.Close)
	w.refusals = New(w.registry, funcr.New(func(prefix, args string) { w.log.WriteString(prefix + args + "\n") }, funcr.Options{}))
	config := &rest.Config{Host: server.URL}
	w.refusals.Wrap(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	w.client, w.url = client, server.URL
	return w
}

func (w *world) request(method, path string) string {
	w.Helper()
	req, err := http.NewRequestWithContext(context.Background(), method, w.url+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	resp, err := w.client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return string(body)
}

func (w *world) metrics(want string, names ...string) {
	w.Helper()
	if err := testutil.GatherAndCompare(w.registry, strings.NewReader(want), names...); err != nil {
		w.Error(err)
	}
}

const (
	watchPods   = "/api/v1/namespaces/team-a/pods?watch=true&labelSelector=a"
	listServers = "/prefix/apis/mcp.espalier.dev/v1alpha1/mcpservers?limit=500"
)

// TestReads: a refused watch is told once by log, for as long as it lasts by
// metric and readiness; the same read allowed ends it, another does not.
func TestReads(t *testing.T) {
	w := newWorld(t)
	if err := w.refusals.Check(nil); err != nil {
		t.Errorf("at first: %v", err)
	}
	w.status = http.StatusForbidden
	for range 3 {
		w.request(http.MethodGet, watchPods)
		w.request(http.MethodGet, listServers)
	}
	err := w.refusals.Check(nil)
	if err == nil || !strings.Contains(err.Error(), "may not list mcpservers.mcp.espalier.dev, nor watch pods in namespace team-a;") {
		t.Errorf("readiness: %v", err)
	}
	if n := strings.Count(w.log.String(), "The operator may not watch pods in namespace team-a"); n != 1 {
		t.Errorf("logged %d times:\n%s", n, w.log.String())
	}
	w.metrics(`# HELP espalier_api_read_refused 1 while the API server refuses a list or watch that the operator cannot work without, 0 after it was allowed; absent where it never was refused. namespace is empty for all.
# TYPE espalier_api_read_refused gauge
espalier_api_read_refused{namespace="",resource="mcpservers.mcp.espalier.dev",verb="list"} 1
espalier_api_read_refused{namespace="team-a",resource="pods",verb="watch"} 1
# HELP espalier_api_refusals_total Requests that the API server refused for want of a right, by verb and resource.
# TYPE espalier_api_refusals_total counter
espalier_api_refusals_total{resource="mcpservers.mcp.espalier.dev",verb="list"} 3
espalier_api_refusals_total{resource="pods",verb="watch"} 3
`)
	w.status = http.StatusOK
	for _, other := range []string{"/api/v1/namespaces/team-a/pods", "/api/v1/namespaces/team-b/pods?watch=true", "/api/v1/namespaces/team-a/pods/one?watch=true"} {
		w.request(http.MethodGet, other)
	}
	w.request(http.MethodPost, watchPods)
	w.request(http.MethodGet, listServers)
	if err := w.refusals.Check(nil); err == nil || strings.Contains(err.Error(), "list") {
		t.Errorf("with a watch of pods still refused: %v", err)
	}
	w.request(http.MethodGet, watchPods)
	if err := w.refusals.Check(nil); err != nil {
		t.Errorf("in the end: %v", err)
	}
	if !strings.Contains(w.log.String(), "The operator may watch pods in namespace team-a again") {
		t.Errorf("the end was not logged:\n%s", w.log.String())
	}
	w.metrics(`# HELP espalier_api_read_refused 1 while the API server refuses a list or watch that the operator cannot work without, 0 after it was allowed; absent where it never was refused. namespace is empty for all.
# TYPE espalier_api_read_refused gauge
espalier_api_read_refused{namespace="",resource="mcpservers.mcp.espalier.dev",verb="list"} 0
espalier_api_read_refused{namespace="team-a",resource="pods",verb="watch"} 0
`, "espalier_api_read_refused")
}

// TestOthers: other refusals are counted by the right that lacks, and the
// answer reaches the client whole. What admission refuses is none of them.
func TestOthers(t *testing.T) {
	w := newWorld(t)
	w.status = http.StatusForbidden
	for _, body := range []string{
		`{"message":"deployments.apps \"x\" is forbidden: User \"system:serviceaccount:a:b\" cannot patch resource \"deployments\" in API group \"apps\" in the namespace \"n\""}`,
		`mcpservers.mcp.espalier.dev "x" is forbidden: User "u" cannot patch resource "mcpservers/status" in API group "mcp.espalier.dev" in the namespace "n"` + strings.Repeat("x", 2*maxRefusal),
		`{"message":"forbidden: User \"u\" cannot get path \"/openid/v1/jwks\""}`,
		`{"message":"pods \"x\" is forbidden: exceeded quota: q, requested: pods=1"}`,
	} {
		w.body = body
		if got := w.request(http.MethodPatch, "/apis/apps/v1/namespaces/n/deployments/x"); got != body {
			t.Errorf("%d bytes arrived of %d", len(got), len(body))
		}
	}
	w.metrics(`# HELP espalier_api_refusals_total Requests that the API server refused for want of a right, by verb and resource.
# TYPE espalier_api_refusals_total counter
espalier_api_refusals_total{resource="/openid/v1/jwks",verb="get"} 1
espalier_api_refusals_total{resource="deployments.apps",verb="patch"} 1
espalier_api_refusals_total{resource="mcpservers.mcp.espalier.dev/status",verb="patch"} 1
`)
	if err := w.refusals.Check(nil); err != nil {
		t.Errorf("a refused write made it unready: %v", err)
	}
}
