// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// back is by when a child that was deleted is back.
const back = 20 * time.Second

// foreignService is somebody's Service of a child's name; even with our label.
func foreignService(w *world, labels map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web-mcp", Namespace: w.namespace, Labels: labels},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 99, TargetPort: intstr.FromInt32(99)}}},
	}
}

// TestForeignObject: it is left as it is and named; when it is gone, the
// server heals.
func TestForeignObject(t *testing.T) {
	t.Parallel()
	yes := true
	others := map[string]func(*corev1.Service){
		"of nobody":         func(*corev1.Service) {},
		"with half a label": func(s *corev1.Service) { s.Labels = map[string]string{mcpv1.LabelServer: "web"} },
		"of another owner": func(s *corev1.Service) {
			s.Labels = map[string]string{mcpv1.LabelServer: "web", mcpv1.LabelManagedBy: mcpv1.ManagedBy}
			s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "other", Controller: &yes}}
		},
	}
	for name, change := range others {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			service := foreignService(w, nil)
			change(service)
			must(t, api.Client.Create(w.ctx, service))
			w.server(`{}`)
			w.becomes(map[string]string{"Ready": "False ForeignObject", "Stalled": "True ForeignObject", "Available": "False ForeignObject", "Accepted": "True Accepted"})
			if m := meta.FindStatusCondition(w.web().Status.Conditions, "Ready").Message; !strings.Contains(m, "Service web-mcp") {
				t.Errorf("it is told as %q", m)
			}
			w.told("Warning ForeignObject MCPServer/web")
			if now := get(w, "web-mcp", &corev1.Service{}); now.ResourceVersion != service.ResourceVersion {
				t.Errorf("it was touched:\n%s", cmp.Diff(service, now))
			}
			must(t, api.Client.Delete(w.ctx, service))
			w.becomesWithin(healed, map[string]string{"Ready": "False Starting", "Stalled": "-", "Available": "False Starting"})
		})
	}
}

// TestAdoption: what a deletion with --cascade=orphan left behind is taken
// over by the next server of that name, pods and all (C04).
func TestAdoption(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	deployment := get(w, "web-mcp", &appsv1.Deployment{})
	must(t, api.Client.Delete(w.ctx, w.web()))
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFound"})
	// The garbage collector, which does not run here, would take these away.
	for _, child := range w.children() {
		child.SetOwnerReferences(nil)
		must(t, api.Client.Update(w.ctx, child))
	}
	w.server(`{replicas: 3}`)
	owner := w.web().UID
	w.eventually(soon, "adoption", func() string {
		for _, child := range w.children() {
			if c := metav1.GetControllerOf(child); c == nil || c.UID != owner {
				return fmt.Sprintf("%T %s has no owner", child, child.GetName())
			}
		}
		return ""
	})
	if now := get(w, "web-mcp", &appsv1.Deployment{}); now.UID != deployment.UID || !cmp.Equal(now.Spec, deployment.Spec) {
		t.Errorf("the Deployment is another one, or rolled out:\n%s", cmp.Diff(deployment, now))
	}
	w.targeted(3)
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved"})
}

// children of web, in whatever state.
func (w *world) children() []client.Object {
	w.Helper()
	return []client.Object{
		get(w, "web-mcp", &appsv1.Deployment{}), get(w, "web-mcp", &corev1.Service{}), get(w, "web-mcp-peers", &corev1.Service{}),
		get(w, "web-mcp", &policyv1.PodDisruptionBudget{}), get(w, "web-mcp-catalog", &corev1.ConfigMap{}),
	}
}

// TestPredecessor: a server that is made anew while the garbage collector has
// not taken the old one's children yet waits for that, and is no failure.
func TestPredecessor(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	old := w.children()
	must(t, api.Client.Delete(w.ctx, w.web()))
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFound"})
	w.server(`{replicas: 3}`)
	w.becomes(map[string]string{"Ready": "False Starting", "Reconciling": "True Starting", "Stalled": "-"})
	for _, child := range old {
		must(t, api.Client.Delete(w.ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	w.serve()
	w.toolBecomes("alpha", isServed)
}

// TestDeletedChild is back at once.
func TestDeletedChild(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	for _, child := range w.children() {
		uid := child.GetUID()
		must(t, api.Client.Delete(w.ctx, child, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		deleted := time.Now()
		w.eventually(soon, fmt.Sprintf("%T", child), func() string {
			if w.exists(child.GetName(), child) && child.GetUID() != uid {
				return ""
			}
			return "it is not back"
		})
		if took := time.Since(deleted); took > back {
			t.Errorf("%T came back after %s", child, took)
		}
	}
}

// TestDrift: what others do to our fields is undone; what they add stays.
func TestDrift(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	patch := func(obj client.Object, body string) {
		t.Helper()
		must(t, api.Client.Patch(w.ctx, obj, client.RawPatch(types.StrategicMergePatchType, []byte(body)), client.FieldOwner("somebody")))
	}
	deployment := get(w, "web-mcp", &appsv1.Deployment{})
	patch(deployment, `{"metadata":{"annotations":{"example.com/note":"n"},"labels":{"example.com/l":"l"}},
	  "spec":{"progressDeadlineSeconds":77,"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}},
	  "spec":{"containers":[{"name":"istio","image":"istio:1"}]}}}}`)
	w.rest()
	if now := get(w, "web-mcp", &appsv1.Deployment{}); now.ResourceVersion != deployment.ResourceVersion {
		t.Errorf("what others added was touched:\n%s", cmp.Diff(deployment, now))
	}
	patch(deployment, `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"name":"server","image":"evil"}]}}}}`)
	service := get(w, "web-mcp", &corev1.Service{})
	patch(service, `{"spec":{"selector":{"app":"evil"}},"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"}}}`)
	catalog := get(w, "web-mcp-catalog", &corev1.ConfigMap{})
	patch(catalog, `{"data":{"catalog-0":"{}"}}`)
	w.eventually(soon, "repair", func() string {
		d, s, c := get(w, "web-mcp", &appsv1.Deployment{}), get(w, "web-mcp", &corev1.Service{}), get(w, "web-mcp-catalog", &corev1.ConfigMap{})
		switch {
		case *d.Spec.Replicas != 3:
			return fmt.Sprintf("%d replicas", *d.Spec.Replicas)
		case image(d) != "ghcr.io/espalier-dev/server:test":
			return "image " + image(d)
		case s.Labels[mcpv1.LabelManagedBy] != mcpv1.ManagedBy || s.Spec.Selector[mcpv1.LabelServer] != "web":
			return fmt.Sprintf("Service %v %v", s.Labels, s.Spec.Selector)
		case c.Data["catalog-0"] == "{}":
			return "the catalog is empty"
		}
		return ""
	})
	d := get(w, "web-mcp", &appsv1.Deployment{})
	if d.Annotations["example.com/note"] != "n" || d.Labels["example.com/l"] != "l" || *d.Spec.ProgressDeadlineSeconds != 77 ||
		d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" || len(d.Spec.Template.Spec.Containers) != 2 {
		t.Errorf("what others added is gone: %+v", d)
	}
	w.rest()
}

func image(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == "server" {
			return c.Image
		}
	}
	return "none"
}

// TestTypeChange: children that the new type does not want go, by UID.
func TestTypeChange(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.server(`{type: External, external: {url: "https://mcp.example.com/mcp"}}`)
	w.eventually(soon, "pruning", func() string {
		for name, of := range map[string]client.Object{
			"web-mcp": &appsv1.Deployment{}, "web-mcp-catalog": &corev1.ConfigMap{},
		} {
			if w.exists(name, of) {
				return fmt.Sprintf("%T %s is still there", of, name)
			}
		}
		if w.exists("web-mcp", &corev1.Service{}) || w.exists("web-mcp", &policyv1.PodDisruptionBudget{}) {
			return "Service or PodDisruptionBudget is still there"
		}
		return ""
	})
	// What was proved of the pods is no proof of the server elsewhere.
	w.becomes(map[string]string{"Ready": "False Pending", "Healthy": "Unknown Pending", "Available": "True NotApplicable", "Synced": "True NotApplicable"})
	w.toolBecomes("alpha", map[string]string{"Accepted": "False ServerNotFronted", "Served": "False NotAccepted"})
	for _, pod := range w.pods() {
		must(t, api.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0)))
	}
	w.prove(w.listing([]byte(`{"name":"theirs"}`)))
	w.becomes(map[string]string{"Ready": "True Proved"})
	w.server(`{type: Container, container: {image: "ghcr.io/acme/orders:1"}}`)
	w.becomes(map[string]string{"Ready": "False Starting", "Reconciling": "True Starting", "Stalled": "-"})
	w.rollOut()
	w.targeted(1)
	w.prove(w.listing([]byte(`{"name":"a"}`), []byte(`{"name":"b"}`)))
	w.becomes(map[string]string{"Ready": "True Proved", "Synced": "True NotApplicable"})
	if w.exists("web-mcp-catalog", &corev1.ConfigMap{}) {
		t.Error("a Container has a catalog")
	}
}

// TestScale: by the scale subresource, as HPA and KEDA do. Ready holds, the
// catalog is not written, tools are not either.
func TestScale(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.rest()
	catalog, alpha, before := get(w, "web-mcp-catalog", &corev1.ConfigMap{}), get(w, "alpha", &mcpv1.MCPTool{}), len(w.writes.all())
	must(t, api.Client.SubResource("scale").Patch(w.ctx, w.web(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
	w.eventually(soon, "4 replicas", func() string {
		return equalTo(*get(w, "web-mcp", &appsv1.Deployment{}).Spec.Replicas, 4)
	})
	w.becomes(map[string]string{"Ready": "True Proved", "Reconciling": "True RollingOut"})
	w.rollOut()
	w.targeted(4)
	w.becomes(map[string]string{"Ready": "True Proved"})
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved", "Reconciling": "-"})
	w.eventually(soon, "4 healthy", func() string { return equalTo(*w.web().Status.HealthyReplicas, 4) })
	w.rest()
	if now := get(w, "web-mcp-catalog", &corev1.ConfigMap{}); now.ResourceVersion != catalog.ResourceVersion {
		t.Errorf("scaling wrote the catalog:\n%s", cmp.Diff(catalog, now))
	}
	if now := get(w, "alpha", &mcpv1.MCPTool{}); now.ResourceVersion != alpha.ResourceVersion {
		t.Errorf("scaling wrote a tool:\n%s", cmp.Diff(alpha, now))
	}
	if applied := w.writes.since(before, "apply"); len(applied) != 1 {
		t.Errorf("scaling applied %v", applied)
	}
}

func equalTo(got, want int32) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("there are %d, want %d", got, want)
}

// TestSuspend: no pods, told as such; spec.replicas stays; and back.
func TestSuspend(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.server(`{replicas: 3, suspend: true}`)
	w.eventually(soon, "0 replicas", func() string { return equalTo(*get(w, "web-mcp", &appsv1.Deployment{}).Spec.Replicas, 0) })
	w.rollOut()
	w.becomes(map[string]string{"Ready": "True Suspended", "Healthy": "Unknown Suspended", "Synced": "True Suspended", "Available": "True Suspended", "Reconciling": "-"})
	w.toolBecomes("alpha", map[string]string{"Accepted": "True Accepted", "Served": "Unknown Suspended"})
	status := w.web().Status
	if status.ToolCount != nil || *status.HealthyReplicas != 0 || status.URL == "" || *w.web().Spec.Replicas != 3 {
		t.Errorf("status %+v", status)
	}
	w.eventually(soon, "the disruption budget and the Service of replicas", func() string {
		if w.exists("web-mcp", &policyv1.PodDisruptionBudget{}) || w.exists("web-mcp-peers", &corev1.Service{}) {
			return "it is still there"
		}
		return ""
	})
	w.server(`{replicas: 3}`)
	w.becomes(map[string]string{"Ready": "False Starting", "Reconciling": "True Starting"})
	w.serve()
	w.toolBecomes("alpha", isServed)
}

// TestOtherSelector: a Deployment of ours with a selector that cannot be
// changed is one clear condition, not an endless error (C05).
func TestOtherSelector(t *testing.T) {
	w := newWorld(t)
	w.server(`{}`)
	w.becomes(map[string]string{"Ready": "False Starting"})
	w.rest()
	w.stop()
	d := get(w, "web-mcp", &appsv1.Deployment{})
	must(t, api.Client.Delete(w.ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	d.ResourceVersion, d.UID, d.ManagedFields, d.Annotations = "", "", nil, nil
	d.Spec.Selector.MatchLabels["app"] = "old"
	d.Spec.Template.Labels["app"] = "old"
	must(t, api.Client.Create(w.ctx, d))
	w.operator = startOperator(t, w.access, w.namespace)
	w.becomes(map[string]string{"Ready": "False ApplyFailed", "Stalled": "True ApplyFailed", "Available": "False ApplyFailed"})
	if m := meta.FindStatusCondition(w.web().Status.Conditions, "Available").Message; !strings.Contains(m, "spec.selector") {
		t.Errorf("it is told as %q", m)
	}
	must(t, api.Client.Delete(w.ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	w.serve()
}

// TestInvalidSpec: it is told, the pods stay, and it heals.
func TestInvalidSpec(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.rest()
	generation := w.generation()
	for spec, want := range map[string]string{
		`{replicas: 3, workload: {podTemplate: {spec: {hostNetwrk: true}}}}`:   "InvalidPodTemplate",
		`{replicas: 3, workload: {podTemplate: {spec: {hostNetwork: true}}}}`:  "PodSecurityViolation",
		`{replicas: 3, workload: {podTemplate: {spec: {dnsPolicy: Nowhere}}}}`: "ApplyFailed",
	} {
		w.server(spec)
		w.becomes(map[string]string{"Ready": "False " + want, "Stalled": "True " + want})
		if now := w.generation(); now != generation {
			t.Errorf("%s: the Deployment was written", want)
		}
	}
	w.told("Warning PodSecurityViolation MCPServer/web")
	w.server(`{replicas: 3}`)
	w.becomes(map[string]string{"Ready": "True Proved", "Accepted": "True Accepted", "Stalled": "-"})
}
