// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// fronting is the report of a pod whose upstreams stand as given.
func (w *world) fronting(tools []json.RawMessage, upstreams ...podreport.Upstream) *mcpprobe.Report {
	w.Helper()
	r := w.report()
	listed := w.listing(tools...)
	r.Tools.Tools = append(r.Tools.Tools, listed.Tools.Tools...)
	r.Pod.Upstreams = upstreams
	return r
}

var ordersTool = []json.RawMessage{json.RawMessage(`{"name":"o_query","inputSchema":{"type":"object"}}`)}

// TestUpstreamConditions: from a reference that leads nowhere, over a server
// that comes, goes and answers, to one that is Ready; and at rest nothing is
// written.
func TestUpstreamConditions(t *testing.T) {
	w := newWorld(t)
	w.server(`{upstreams: [{name: orders, serverRef: {name: orders}, prefix: o_}]}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.rollOut()
	w.targeted(1)
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "UpstreamsReady": "False ServerNotFound", "ResolvedRefs": "False ServerNotFound", "Synced": "True Synced"})

	// The reference is watched: what it names may come later.
	w.apply(`{kind: MCPServer, metadata: {name: orders}, spec: {type: Container, container: {image: orders}}}`)
	w.eventually(soon, "the upstream in the catalog", func() string {
		config, _, err := w.catalog()
		if err != nil || len(config.Upstreams) != 1 {
			return "it is not there"
		}
		if want := "http://orders-mcp." + w.namespace + ".svc:8080/mcp"; config.Upstreams[0].URL != want || config.Policy == nil || config.Policy.Max != 100 {
			return config.Upstreams[0].URL
		}
		return ""
	})
	w.prove(w.fronting(nil, podreport.Upstream{Name: "orders", State: podreport.UpstreamUnavailable, Reason: "ConnectionRefused"}))
	w.becomes(map[string]string{"Ready": "True Proved", "UpstreamsReady": "False UpstreamsUnavailable", "ResolvedRefs": "True ResolvedRefs", "Synced": "True Synced"})
	w.prove(w.fronting(ordersTool, podreport.Upstream{Name: "orders", State: podreport.UpstreamReady, Protocol: "2026-07-28", Tools: 1}))
	w.becomes(map[string]string{"Ready": "True Proved", "UpstreamsReady": "True UpstreamsReady", "Synced": "True Synced"})
	status := w.web().Status
	if len(status.Upstreams) != 1 || status.Upstreams[0].State != "Ready" || *status.Upstreams[0].Tools != 1 || *status.ToolCount != 2 {
		t.Errorf("status %+v, %d tools", status.Upstreams, *status.ToolCount)
	}
	w.rest()
	versions := w.versions()
	w.prove(w.fronting(ordersTool, podreport.Upstream{Name: "orders", State: podreport.UpstreamReady, Protocol: "2026-07-28", Tools: 1}))
	w.pass()
	if diff := cmp.Diff(versions, w.versions()); diff != "" {
		t.Errorf("something was written at rest:\n%s", diff)
	}
}

// TestUpstreamCircle closes by an edit of another server, and is told of both.
func TestUpstreamCircle(t *testing.T) {
	w := newWorld(t)
	w.apply(`{kind: MCPServer, metadata: {name: middle}, spec: {}}`)
	w.server(`{upstreams: [{name: m, serverRef: {name: middle}}]}`)
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.apply(`{kind: MCPServer, metadata: {name: middle}, spec: {upstreams: [{name: w, serverRef: {name: web}}]}}`)
	w.becomes(map[string]string{"UpstreamsReady": "False UpstreamCycle"})
	w.apply(`{kind: MCPServer, metadata: {name: middle}, spec: {}}`)
	w.becomes(map[string]string{"UpstreamsReady": "Unknown Pending"})
}

// TestUpstreamCredential: the Secret of an upstream, inherited or its own, is
// mounted and its value stands nowhere.
func TestUpstreamCredential(t *testing.T) {
	w := newWorld(t)
	must(t, api.Client.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "vendor", Namespace: w.namespace}, StringData: map[string]string{"token": "s3cr3t"}}))
	w.apply(`{kind: MCPServer, metadata: {name: vendor}, spec: {type: External, external: {url: "https://vendor.test/mcp", headers: [{name: Authorization, prefix: "Bearer ", secretKeyRef: {name: vendor, key: token}}]}}}`)
	w.server(`{upstreams: [{name: vendor, serverRef: {name: vendor}}]}`)
	w.rollOut()
	w.eventually(soon, "the mounted key", func() string {
		for _, pod := range w.pods() {
			for _, v := range pod.Spec.Volumes {
				if v.Projected != nil && len(v.Projected.Sources) == 1 && v.Projected.Sources[0].Secret != nil && v.Projected.Sources[0].Secret.Name == "vendor" {
					return ""
				}
			}
		}
		w.rollOut()
		return "it is not mounted"
	})
	config, _, err := w.catalog()
	must(t, err)
	if raw, _ := json.Marshal(config); strings.Contains(string(raw), "s3cr3t") || len(config.Upstreams) != 1 || config.Upstreams[0].Headers[0].File != "secrets/vendor/token" {
		t.Errorf("catalog %s", raw)
	}
}

// TestChildConditions: a server of type Stdio from the pod that runs the
// user's image to a child that ends, and back.
func TestChildConditions(t *testing.T) {
	w := newWorld(t)
	w.server(`{type: Stdio, stdio: {image: "node:22", command: [npx, -y, x], env: [{name: KEY, valueFrom: {secretKeyRef: {name: s, key: k}}}]}}`)
	w.becomes(map[string]string{"ResolvedRefs": "False SecretNotFound"})
	must(t, api.Client.Create(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: w.namespace}, StringData: map[string]string{"k": "s3cr3t"}}))
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.rest() // The Secret's version is in the template.
	w.rollOut()
	w.targeted(1)
	pod := w.pods()[0].Spec
	if c := pod.Containers[0]; c.Image != "node:22" || c.Command[0] != "/espalier/server" || pod.InitContainers[0].Image != "ghcr.io/espalier-dev/server:test" {
		t.Errorf("the pod runs %s %v beside %v", c.Image, c.Command, pod.InitContainers)
	}
	answers := podreport.Upstream{Name: "Stdio", State: podreport.UpstreamReady, Protocol: "2025-06-18", Tools: 1, Child: &podreport.Child{State: podreport.ChildRunning}}
	w.prove(w.fronting(ordersTool, answers))
	w.becomes(map[string]string{"Ready": "True Proved", "UpstreamsReady": "True UpstreamsReady", "Synced": "True Synced"})
	w.prove(w.fronting(nil, podreport.Upstream{Name: "Stdio", State: podreport.UpstreamUnavailable, Reason: "ChildExited", Child: &podreport.Child{State: podreport.ChildExited, ExitCode: 1}}))
	w.becomes(map[string]string{"Ready": "False ChildExited", "UpstreamsReady": "False ChildExited", "Synced": "True Synced"})
	w.prove(w.fronting(ordersTool, answers))
	w.becomes(map[string]string{"Ready": "True Proved"})
	if config, _, err := w.catalog(); err != nil || len(config.Upstreams) != 1 || config.Upstreams[0].Stdio == nil || config.Upstreams[0].Stdio.Env[0] != "KEY" {
		t.Errorf("catalog %+v, %v", config, err)
	}
}

// TestUpstreamHandlerConditions: a tool that an upstream answers, from a server
// that has no such upstream to one that has; who is served, and what is counted
// of the other kinds.
func TestUpstreamHandlerConditions(t *testing.T) {
	w := newWorld(t)
	w.server(`{}`)
	w.tool("find", `upstream: {name: orders, tool: q}`)
	w.toolBecomes("find", map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "False UpstreamNotFound"})
	w.apply(`{kind: MCPServer, metadata: {name: web}, spec: {tools: {retrieve: true}, upstreams: [{name: orders, url: "http://orders.test/mcp", when: "principal.kind =="}]}}`)
	w.becomes(map[string]string{"Accepted": "False InvalidUpstream"})
	w.apply(`{kind: MCPServer, metadata: {name: web}, spec: {tools: {retrieve: true}, upstreams: [{name: orders, url: "http://orders.test/mcp", when: "principal.kind == 'JWT'"}]}}`)
	w.becomes(map[string]string{"Accepted": "True Accepted"})
	w.toolBecomes("find", map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.eventually(soon, "the catalog", func() string {
		config, _, err := w.catalog()
		if err != nil || len(config.Upstreams) != 1 || len(config.Tools) != 1 {
			return "it is not there"
		}
		if got := config.Tools[0].Upstream; got == nil || got.Upstream != "orders" || got.Tool != "q" || !config.Retrieve || config.Upstreams[0].When != "principal.kind == 'JWT'" {
			return "it is another one"
		}
		return ""
	})
	w.rollOut()
	w.targeted(1)
	w.prove(w.fronting(nil, podreport.Upstream{Name: "orders", State: podreport.UpstreamReady, Protocol: "2026-07-28", Tools: 1, Resources: 3, Prompts: 2}))
	w.becomes(map[string]string{"Ready": "True Proved", "UpstreamsReady": "True UpstreamsReady"})
	if u := w.web().Status.Upstreams; len(u) != 1 || *u[0].Tools != 1 || *u[0].Resources != 3 || *u[0].Prompts != 2 {
		t.Errorf("status %+v", u)
	}
}
