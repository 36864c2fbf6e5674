// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// twoTools are a server of three replicas and two tools.
func twoTools(w *world) {
	w.Helper()
	w.server(`{replicas: 3}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.tool("beta", `expression: {text: "'b'"}`)
}

var isServed = map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Served": "True Served"}

// TestYAMLToServed: the main line, and that at its end nothing is written.
func TestYAMLToServed(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.becomes(map[string]string{"Ready": "False Starting", "Reconciling": "True Starting", "Accepted": "True Accepted"})
	for _, child := range []client.Object{
		get(w, "web-mcp", &appsv1.Deployment{}), get(w, "web-mcp", &corev1.Service{}), get(w, "web-mcp-peers", &corev1.Service{}),
		get(w, "web-mcp", &policyv1.PodDisruptionBudget{}), get(w, "web-mcp-catalog", &corev1.ConfigMap{}),
	} {
		owner := metav1.GetControllerOf(child)
		if owner == nil || owner.UID != w.web().UID || len(child.GetOwnerReferences()) != 1 {
			t.Errorf("%T has owners %v", child, child.GetOwnerReferences())
		}
	}
	w.toolBecomes("alpha", map[string]string{"Accepted": "True Accepted", "Served": "Unknown Pending"})
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.toolBecomes("beta", isServed)

	status := w.web().Status
	_, digest, err := w.catalog()
	must(t, err)
	got := []any{*status.ToolCount, *status.Replicas, *status.ReadyReplicas, *status.HealthyReplicas, *status.SyncedReplicas, status.URL, status.Selector, status.CatalogDigest, status.Transports}
	want := []any{int32(2), int32(3), int32(3), int32(3), int32(3), "http://web-mcp." + w.namespace + ".svc:8080/mcp", "mcp.espalier.dev/server=web", digest, "StreamableHTTP"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	for _, c := range status.Conditions {
		if c.ObservedGeneration != w.web().Generation {
			t.Errorf("%s is of generation %d", c.Type, c.ObservedGeneration)
		}
	}
	w.rest()
	versions := w.versions()
	for range 5 {
		w.pass()
	}
	w.prove(w.report()) // the same facts again
	w.pass()
	if diff := cmp.Diff(versions, w.versions()); diff != "" {
		t.Errorf("something was written at rest:\n%s", diff)
	}
	if w.prober.pass(w.key("web")) > 400 {
		t.Errorf("%d passes: it woke itself", w.prober.pass(w.key("web")))
	}
}

// TestRestart: an operator that starts anew writes nothing: not before the
// first probe, not while probes are pending, not with the same results.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.tool("gamma", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: late, key: token}}]}`)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.toolBecomes("gamma", map[string]string{"ResolvedRefs": "False SecretNotFound", "Served": "True Served"})
	w.rest()
	versions, report := w.versions(), w.report()
	for range 2 {
		w.restart()
		w.targeted(3)
		for range 3 {
			w.pass()
		}
		w.prove(report)
		for range 3 {
			w.pass()
		}
		if lines := w.writes.all(); len(lines) > 0 {
			t.Errorf("after a restart it wrote %v", lines)
		}
		if diff := cmp.Diff(versions, w.versions()); diff != "" {
			t.Errorf("after a restart something changed:\n%s", diff)
		}
	}
}

// TestReapply: order of creation, unrelated labels and a re-applied manifest
// change no child (A08).
func TestReapply(t *testing.T) {
	w := newWorld(t)
	w.tool("beta", `expression: {text: "'b'"}`) // before its server
	w.toolBecomes("beta", map[string]string{"Accepted": "False ServerNotFound", "Served": "False ServerNotFound", "Stalled": "-"})
	twoTools(w)
	w.serve()
	w.toolBecomes("beta", isServed)
	w.rest()
	before := get(w, "web-mcp", &appsv1.Deployment{})
	w.apply(`{kind: MCPServer, metadata: {name: web, labels: {team: x, argocd.argoproj.io/instance: apps}, annotations: {argocd.argoproj.io/tracking-id: "apps:x"}}, spec: {replicas: 3}}`)
	w.tool("beta", `expression: {text: "'b'"}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	w.rest()
	after := get(w, "web-mcp", &appsv1.Deployment{})
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the Deployment changed:\n%s", cmp.Diff(before, after))
	}
	for _, child := range []client.Object{after, get(w, "web-mcp", &corev1.Service{}), get(w, "web-mcp-catalog", &corev1.ConfigMap{})} {
		for key := range child.GetLabels() {
			if key == "team" || key == "argocd.argoproj.io/instance" {
				t.Errorf("%T took label %s", child, key)
			}
		}
		if _, ok := child.GetAnnotations()["argocd.argoproj.io/tracking-id"]; ok {
			t.Errorf("%T took an annotation", child)
		}
	}
}

// TestSpecIsNeverWritten: what the user applied stays as it is, odd quantities
// included (C08).
func TestSpecIsNeverWritten(t *testing.T) {
	w := newWorld(t)
	w.server(`{workload: {resources: {limits: {cpu: 1000m, memory: 0.5Gi}}}}`)
	applied := w.web()
	w.serve()
	w.rest()
	now := w.web()
	if now.Generation != applied.Generation || !cmp.Equal(now.Spec, applied.Spec) {
		t.Errorf("the spec changed:\n%s", cmp.Diff(applied.Spec, now.Spec))
	}
	for _, entry := range now.ManagedFields {
		if entry.Manager == mcpv1.ManagedBy && entry.Subresource != "status" {
			t.Errorf("the operator manages %s", entry.FieldsV1)
		}
	}
	if get(w, "web-mcp", &appsv1.Deployment{}).Generation != 1 {
		t.Error("the Deployment was written more than once")
	}
}
