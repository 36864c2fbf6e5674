// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// TestRollingRestart: kubectl rollout restart replaces three pods one by one.
// Ready stays True throughout, no tool's status and no child is written.
func TestRollingRestart(t *testing.T) {
	w := newWorld(t)
	twoTools(w)
	w.serve()
	w.toolBecomes("alpha", isServed)
	w.toolBecomes("beta", isServed)
	w.rest()
	before := len(w.writes.all())
	d := get(w, "web-mcp", &appsv1.Deployment{})
	must(t, api.Client.Patch(w.ctx, d, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z"}}}}}`))))
	key := w.key("web")
	ready := func(when string) {
		t.Helper()
		w.pass()
		if got := condition(w.web().Status.Conditions, "Ready"); got != "True Proved" {
			t.Errorf("%s Ready is %s", when, got)
		}
	}
	ready("at first")
	for i, old := range w.pods() {
		w.startPod(d, "restarted", 10+i)
		w.targeted(4)
		ready("with a pod that is not probed")
		w.prove(w.report())
		ready("with four pods")
		must(t, api.Client.Delete(w.ctx, &old, client.GracePeriodSeconds(0)))
		w.targeted(3)
		ready("with three pods")
	}
	w.complete(get(w, "web-mcp", &appsv1.Deployment{}))
	w.becomes(map[string]string{"Ready": "True Proved", "Reconciling": "-"})
	w.rest()
	if lines := w.writes.since(before, "MCPTool"); len(lines) > 0 {
		t.Errorf("tools were written: %v", lines)
	}
	if lines := w.writes.since(before, "apply"); len(lines) > 0 {
		t.Errorf("children were written: %v", lines)
	}
	if spec, _ := w.prober.spec(key); len(spec.Targets) != 3 {
		t.Errorf("%d targets in the end", len(spec.Targets))
	}
	if d = get(w, "web-mcp", &appsv1.Deployment{}); d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] == "" {
		t.Error("the restart's annotation is gone")
	}
}

// TestGate: a pod takes traffic only after it was proved; the gate is opened
// through pods/status, once, and never closed again.
func TestGate(t *testing.T) {
	w := newWorld(t)
	w.server(`{type: Container, container: {image: "i"}, probe: {gateReadiness: true}}`)
	w.rollOut()
	pod := w.pods()[0]
	setReady := func(status corev1.ConditionStatus) {
		t.Helper()
		fresh := get(w, pod.Name, &corev1.Pod{})
		for i := range fresh.Status.Conditions {
			if fresh.Status.Conditions[i].Type == corev1.PodReady {
				fresh.Status.Conditions[i].Status = status
			}
		}
		must(t, api.Client.Status().Update(w.ctx, fresh))
	}
	setReady(corev1.ConditionFalse)
	w.targeted(1)
	w.becomes(map[string]string{"Ready": "False Starting"})
	gate := func() string {
		for _, c := range get(w, pod.Name, &corev1.Pod{}).Status.Conditions {
			if c.Type == resources.GateProved {
				return string(c.Status)
			}
		}
		return "closed"
	}
	w.pass()
	if got := gate(); got != "closed" {
		t.Errorf("before any proof the gate is %s", got)
	}
	w.prove(w.listing([]byte(`{"name":"theirs"}`)))
	w.eventually(soon, "the gate", func() string {
		if got := gate(); got != "True" {
			return "it is " + got
		}
		return ""
	})
	setReady(corev1.ConditionTrue)
	w.becomes(map[string]string{"Ready": "True Proved"})
	w.rest()
	failed := w.listing()
	failed.Outcome, failed.Step = "Timeout", "initialize"
	w.judge(prober.Failing, failed)
	w.becomes(map[string]string{"Ready": "False Timeout"})
	if got := gate(); got != "True" {
		t.Errorf("a failure closed the gate: %s", got)
	}
}

// TestEvents: one for each transition of a life, none at rest.
func TestEvents(t *testing.T) {
	w := newWorld(t)
	w.server(`{}`)
	w.becomes(map[string]string{"Ready": "False Starting"})
	w.serve()
	failed := w.listing()
	failed.Outcome, failed.Step = "NotMCP", "initialize"
	w.judge(prober.Failing, failed)
	w.becomes(map[string]string{"Ready": "False NotMCP"})
	w.told("Warning NotMCP MCPServer/web: Ready is False")
	w.prove(w.report())
	w.becomes(map[string]string{"Ready": "True Proved"})
	w.rest()
	counted := func() map[string]int {
		out := map[string]int{}
		for _, line := range w.events() {
			var kind, reason string
			_, _ = fmt.Sscan(line, &kind, &reason)
			out[kind+" "+reason]++
		}
		return out
	}
	before := counted()
	for range 5 {
		w.pass()
	}
	if diff := cmp.Diff(before, counted()); diff != "" {
		t.Errorf("events at rest:\n%s", diff)
	}
	for what := range before {
		if !slices.Contains([]string{"Normal Starting", "Normal RollingOut", "Normal Pending", "Normal Proved", "Warning NotMCP"}, what) {
			t.Errorf("an event %s: %v", what, w.events())
		}
	}
}

// TestManyServers: twenty servers with an operator that is replaced in the
// middle all end Ready, and nothing is there twice.
func TestManyServers(t *testing.T) {
	w := newWorld(t)
	const n = 20
	for i := range n {
		w.apply(fmt.Sprintf("{kind: MCPServer, metadata: {name: s%d}, spec: {type: External, external: {url: \"https://mcp.example.com/%d\"}}}", i, i))
		if i == n/2 {
			w.restart()
		}
	}
	report := w.listing([]byte(`{"name":"theirs"}`))
	for i := range n {
		key := w.key(fmt.Sprintf("s%d", i))
		w.eventually(soon, "target of "+key.Name, func() string {
			if spec, known := w.prober.spec(key); known && len(spec.Targets) == 1 {
				return ""
			}
			return "there is none"
		})
		w.prober.set(key, "external", prober.Proved, report)
		w.prober.tell(key)
	}
	w.eventually(soon, "Ready", func() string {
		var list mcpv1.MCPServerList
		must(t, api.Client.List(w.ctx, &list, client.InNamespace(w.namespace)))
		for _, server := range list.Items {
			if got := condition(server.Status.Conditions, "Ready"); got != "True Proved" {
				return server.Name + " is " + got
			}
		}
		return ""
	})
}
