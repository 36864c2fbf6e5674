// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
)

// states are all that a status is tested to tell.
var states = func() map[string]state {
	all := maps.Clone(tableStates)
	maps.Copy(all, besideStates)
	return all
}()

// unjudged is what a prober that has just begun knows of the pods.
func unjudged(w *world) {
	for _, pod := range w.pods {
		w.observe(pod, prober.Pending, nil)
	}
}

// besideStates are of a prober that is behind, and what no row of the table has.
var besideStates = map[string]state{
	// Prober behind.
	"prober behind": {
		before: serving3, now: func(w *world) { w.lagging = true }, ready: "Unknown Stale", tools: 2, others: map[string]string{"Healthy": "Unknown Stale"},
	},

	"the first result after a restart is awaited": {
		before: serving3, now: func(w *world) {
			w.restart()
			unjudged(w)
		},
		ready: "True Proved", tools: 2, others: map[string]string{"Healthy": "True Proved", "Synced": "True Synced"},
	},
	"the first result after a restart does not come": {
		before: serving3, now: func(w *world) {
			w.restart()
			unjudged(w)
			w.lagging = true // two intervals are over
		},
		ready: "Unknown Stale", tools: 2, others: map[string]string{"Healthy": "Unknown Stale"}, message: "espalier_probe_lag_seconds",
	},
	"prober behind, and one replica is known to fail": {
		before: serving3, now: func(w *world) {
			w.lagging = true
			w.failing(w.pods[1], mcpprobe.Timeout, mcpprobe.StepInitialize)
		},
		ready: "False Timeout", tools: 2, others: map[string]string{"Healthy": "False Timeout"},
	},
	"by way of the Service, the first result of other pods is awaited": {
		spec: `{replicas: 2, probe: {via: Service}}`, before: func(w *world) {
			w.serving(2)
			r := w.report()
			r.Pod = nil
			w.targets = map[string]prober.TargetObservation{}
			w.target(targetService, "web-mcp", prober.Proved, r)
		},
		now:   func(w *world) { w.target(targetService, "web-mcp", prober.Pending, nil) },
		ready: "True Proved", tools: 2, others: map[string]string{"Healthy": "True Proved"},
	},
	"by way of the Service, it fails": {
		spec: `{replicas: 2, probe: {via: Service}}`, now: func(w *world) {
			w.serving(2)
			w.targets = map[string]prober.TargetObservation{}
			w.target(targetService, "web-mcp", prober.Failing, &mcpprobe.Report{Outcome: mcpprobe.ConnectionLost, Step: mcpprobe.StepInitialize})
			w.server.Status.LastProbe = &mcpv1.LastProbe{Time: metav1.NewTime(epoch)}
		},
		ready: "False ConnectionLost", tools: -1, others: map[string]string{"Healthy": "False ConnectionLost"},
	},

	"a catalog change cannot be read by a pod": {
		before: serving1, now: func(w *world) {
			w.tool("alpha", `expression: {text: "'new'"}`)
			old := *w.targets[string(w.pods[0].UID)].Report
			pod := *old.Pod
			pod.CatalogState = podreport.CatalogInvalid
			old.Pod = &pod
			w.observe(w.pods[0], prober.Proved, &old)
			w.pass()
			w.later(31 * time.Second)
		},
		ready: "False CatalogNotLoaded", tools: 2, message: "pod web-1: it cannot read it",
	},
	"a catalog change takes long by way of the Service": {
		spec: `{probe: {via: Service}}`, before: func(w *world) {
			w.serving(1)
			r := w.report()
			r.Pod = nil
			w.targets = map[string]prober.TargetObservation{}
			w.target(targetService, "web-mcp", prober.Proved, r)
		},
		now: func(w *world) {
			w.tool("alpha", `expression: {text: "'new'"}`)
			w.pass()
			w.later(31 * time.Second)
			if got := condition(w.pass().Conditions, "Synced"); got != "False CatalogPending" {
				w.t.Errorf("before a probe could tell: %s", got)
			}
			w.later(40 * time.Second)
		},
		ready: "False CatalogNotLoaded", tools: 2, message: "not loaded within 1m10s",
	},

	// Beside the table.
	"no pod can be connected": {
		now: func(w *world) {
			setReady(unproved(w), true)
			w.complete()
			w.failing(w.pods[0], mcpprobe.Timeout, mcpprobe.StepDial)
			w.later(time.Hour)
		},
		ready: "Unknown ProbeBlocked", tools: -1, message: "spec.probe.via", others: map[string]string{"Healthy": "Unknown ProbeBlocked"},
	},
	"no pod can be connected any more": {
		before: serving1, now: func(w *world) { w.failing(w.pods[0], mcpprobe.Timeout, mcpprobe.StepDial) },
		ready: "False Timeout", tools: -1,
	},
	"one of several can be connected": {
		now: func(w *world) {
			w.serving(1)
			w.failing(w.pod("web-2"), mcpprobe.Timeout, mcpprobe.StepDial)
		},
		ready: "False Timeout", tools: 2, message: "1 of 2 replicas fail",
	},
	"the operator may not": {
		now: func(w *world) {
			w.problems = []*problem{{condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonForbidden, message: "The operator may not create services"}}
			w.later(time.Hour)
		},
		ready: "False Forbidden", tools: -1, others: map[string]string{"Available": "False Forbidden"},
	},
	"the operator may not, but it serves": {
		before: serving1, now: func(w *world) {
			w.problems = []*problem{{condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonForbidden, message: "The operator may not patch pods/status"}}
		},
		ready: "True Proved", tools: 2, others: map[string]string{"Available": "False Forbidden"},
	},
	"an evicted pod is left over": {
		before: serving1, now: func(w *world) {
			evicted := w.pod("web-0")
			setReady(evicted, false)
			evicted.Status.Phase, evicted.Status.Reason = corev1.PodFailed, "Evicted"
		},
		ready: "True Proved", tools: 2, others: map[string]string{"Available": "True Available"},
	},
	"a pod that waits behind the gate fails": {
		spec: `{type: Container, container: {image: i}, probe: {gateReadiness: true}}`, now: func(w *world) {
			pod := unproved(w)
			pod.Status.Conditions[1].Status = corev1.ConditionTrue // its containers are ready
			w.failing(pod, mcpprobe.NotMCP, mcpprobe.StepInitialize)
		},
		ready: "False NotMCP", reconciling: "Starting", tools: -1,
	},
	"another URL is not proved by the old one": {
		spec: externalSpec, before: external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone), now: func(w *world) {
			w.spec(`{type: External, external: {url: "https://mcp.example.com/mcp?tenant=b"}}`)
			w.targets = map[string]prober.TargetObservation{}
		},
		ready: "False Pending", reconciling: "Pending", tools: -1, others: map[string]string{"Healthy": "Unknown Pending"},
	},
	"another type is not proved by the old one": {
		before: serving1, now: func(w *world) {
			w.spec(externalSpec)
			w.targets = map[string]prober.TargetObservation{}
		},
		ready: "False Pending", reconciling: "Pending", tools: -1, others: map[string]string{"Healthy": "Unknown Pending", "Synced": "True NotApplicable"},
	},
	"catalog too large": {
		before: serving1, now: func(w *world) {
			w.problems = []*problem{{condition: mcpv1.ConditionSynced, reason: mcpv1.ReasonCatalogTooLarge, message: "m", stalled: true}}
		},
		ready: "False CatalogTooLarge", stalled: "CatalogTooLarge", tools: 2, others: map[string]string{"Synced": "False CatalogTooLarge", "Healthy": "True Proved"},
	},
}
