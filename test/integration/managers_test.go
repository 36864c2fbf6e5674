// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// applyAs applies a document under a field manager of its own.
func (w *world) applyAs(manager, document string, opts ...client.ApplyOption) error {
	w.Helper()
	object := &unstructured.Unstructured{}
	must(w.T, yaml.Unmarshal([]byte(document), &object.Object))
	object.SetNamespace(w.namespace)
	return api.Client.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(object), append(opts, client.FieldOwner(manager))...)
}

// TestGitOpsManagers: what another manager applies to a child stays, and the
// two do not write in turns; what the operator sets is refused to others, and
// set back once where it was forced.
func TestGitOpsManagers(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	theirs := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web-mcp, labels: {team: x}, annotations: {note: text}},
		spec: {progressDeadlineSeconds: 77, template: {metadata: {annotations: {restarted: "1"}}}}}`
	before := len(w.writes.all())
	for range 2 {
		must(t, w.applyAs("theirs", theirs))
		w.rest()
	}
	if lines := w.writes.since(before, "apply"); len(lines) > 0 {
		t.Errorf("the operator wrote in turn: %v", lines)
	}

	taken := strings.Replace(theirs, "progressDeadlineSeconds: 77", "progressDeadlineSeconds: 77, replicas: 5", 1)
	if err := w.applyAs("theirs", taken); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `"espalier"`) {
		t.Errorf("to take the operator's field gives %v", err)
	}
	must(t, w.applyAs("theirs", taken, client.ForceOwnership))
	w.eventually(soon, "3 replicas", func() string { return equalTo(*get(w, "web-mcp", &appsv1.Deployment{}).Spec.Replicas, 3) })
	w.rest()
	if lines := w.writes.since(before, "apply"); len(lines) != 1 {
		t.Errorf("it was set back by %v", lines)
	}
	must(t, w.applyAs("theirs", theirs))
	w.rest()
	d := get(w, "web-mcp", &appsv1.Deployment{})
	if d.Labels["team"] != "x" || d.Annotations["note"] != "text" || *d.Spec.ProgressDeadlineSeconds != 77 || *d.Spec.Replicas != 3 || d.Spec.Template.Annotations["restarted"] != "1" {
		t.Errorf("what others added is gone: %v %v %v", d.Labels, d.Annotations, d.Spec)
	}

	// Our kinds: the operator owns the status and nothing else, so that no
	// applier ever conflicts with it.
	for _, manager := range []string{"kubectl", "flux"} {
		must(t, w.applyAs(manager, `{apiVersion: mcp.espalier.dev/v1alpha1, kind: MCPServer, metadata: {name: web}, spec: {replicas: 3}}`))
	}
	w.rest()
	for _, entry := range w.web().ManagedFields {
		if entry.Manager == mcpv1.ManagedBy && entry.Subresource != "status" {
			t.Errorf("the operator manages %s", entry.FieldsV1)
		}
	}
}
