// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// walker takes a world through a random life: edits, scaling, rollouts,
// failures, probes and restarts of the operator in any order.
type walker struct {
	*world
	random *rand.Rand
	made   int
	// spec of the server with its replicas left out, and whether the type is
	// changed on the way.
	base  string
	mixed bool
	// serves is the catalog that each pod has loaded, as its report would be.
	serves map[string]*mcpprobe.Report
	// known are the versions of alpha that each catalog serves.
	known map[string]string
}

func (w *walker) anyPod() *corev1.Pod {
	if len(w.pods) == 0 {
		return nil
	}
	return w.pods[w.random.IntN(len(w.pods))]
}

// noteCatalog remembers which version of alpha the present catalog serves.
func (w *walker) noteCatalog() {
	c, set := w.catalog()
	version := ""
	if alpha := c.Served[catalog.ID{Kind: catalog.KindTool, Name: "alpha"}]; alpha != nil {
		version = alpha.EntryDigest
	}
	w.known[set.Digest] = version
}

var steps = []struct {
	name string
	do   func(*walker)
}{
	{"edit alpha", func(w *walker) {
		w.made++
		w.world.tool("alpha", fmt.Sprintf(`{description: "%d", expression: {text: "'%d'"}}`, w.made%2, w.made%5))
	}},
	{"break alpha", func(w *walker) { w.world.tool("alpha", `expression: {text: "1 +"}`) }},
	{"scale", func(w *walker) { w.spec(fmt.Sprintf(w.base, w.random.IntN(4))); w.deploy() }},
	{"exclude alpha", func(w *walker) {
		if resources.Fronted(w.server) {
			w.spec(`{replicas: 2, tools: {exclude: [alpha]}}`)
			w.deploy()
		}
	}},
	{"another type", func(w *walker) {
		if w.mixed {
			w.base = walks[w.random.IntN(len(walks))]
			w.spec(fmt.Sprintf(w.base, 1))
			w.targets = map[string]prober.TargetObservation{}
			w.deploy()
		}
	}},
	{"the endpoint is probed", func(w *walker) {
		if !resources.HasPods(w.server) {
			w.target(targetExternal, "web", prober.Proved, w.report())
		}
	}},
	{"the endpoint rejects", func(w *walker) {
		if !resources.HasPods(w.server) {
			w.target(targetExternal, "web", prober.Failing, &mcpprobe.Report{Outcome: mcpprobe.AuthRejected, Step: mcpprobe.StepInitialize})
		}
	}},
	{"a pod comes", func(w *walker) {
		w.made++
		pod := w.pod(fmt.Sprintf("web-%03d", w.made))
		pod.CreationTimestamp = metav1.NewTime(w.now)
		setReady(pod, false)
		w.serves[pod.Name] = w.report()
	}},
	{"a pod is ready", func(w *walker) {
		if pod := w.anyPod(); pod != nil {
			setReady(pod, true)
		}
	}},
	{"a pod is not ready", func(w *walker) {
		if pod := w.anyPod(); pod != nil {
			setReady(pod, false)
			delete(w.targets, string(pod.UID)) // It is not dialled any more.
		}
	}},
	{"a pod ends", func(w *walker) {
		if pod := w.anyPod(); pod != nil {
			pod.DeletionTimestamp = &metav1.Time{Time: w.now}
			delete(w.targets, string(pod.UID))
		}
	}},
	{"a pod is gone", func(w *walker) {
		if pod := w.anyPod(); pod != nil {
			delete(w.targets, string(pod.UID))
			w.pods = slices.DeleteFunc(slices.Clone(w.pods), func(p *corev1.Pod) bool { return p == pod })
		}
	}},
	{"a pod loads the catalog", func(w *walker) {
		if pod := w.anyPod(); pod != nil {
			w.serves[pod.Name] = w.report()
		}
	}},
	{"a pod is probed", func(w *walker) {
		if pod := w.anyPod(); pod != nil && podstate.Dialable(pod) {
			w.observe(pod, prober.Proved, w.serves[pod.Name])
		}
	}},
	{"all pods are probed", func(w *walker) {
		for _, pod := range w.pods {
			if podstate.Dialable(pod) {
				w.observe(pod, prober.Proved, w.serves[pod.Name])
			}
		}
	}},
	{"a pod fails", func(w *walker) {
		if pod := w.anyPod(); pod != nil && podstate.Dialable(pod) {
			w.failing(pod, mcpprobe.Timeout, mcpprobe.StepInitialize)
		}
	}},
	{"the Deployment is complete", func(w *walker) {
		if w.deployment != nil {
			w.complete()
		}
	}},
	{"the operator restarts", func(w *walker) { w.world.restart() }},
	{"seconds pass", func(w *walker) { w.later(7 * time.Second) }},
	{"minutes pass", func(w *walker) { w.later(3 * time.Minute) }},
}

// walks are the specs of servers that are walked with.
var walks = []string{
	`replicas: %d`,
	`{type: Container, container: {image: i}, probe: {gateReadiness: true}, replicas: %d}`,
	`{type: External, external: {url: "https://mcp.example.com/mcp"}, replicas: %d}`,
}

// TestRandomWalk holds what must be true of any status, whatever happened.
func TestRandomWalk(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(32) {
		w := &walker{
			random: rand.New(rand.NewPCG(seed, 7)), base: walks[seed%uint64(len(walks))], mixed: seed%4 == 3,
			serves: map[string]*mcpprobe.Report{}, known: map[string]string{},
		}
		w.world = newWorld(t, fmt.Sprintf(w.base, 2))
		w.deploy()
		var trail []string
		for range 150 {
			step := steps[w.random.IntN(len(steps))]
			trail = append(trail, step.name)
			step.do(w)
			w.noteCatalog()
			conditions := w.toolPass("alpha")
			seen["Served "+condition(conditions, "Served")] = true
			seen["Ready "+condition(w.server.Status.Conditions, "Ready")] = true
			w.checkServer(w.server.Status)
			w.checkServed(conditions)
			w.checkRestart()
			if t.Failed() {
				t.Fatalf("seed %d, after %q", seed, trail[max(0, len(trail)-12):])
			}
		}
	}
	for _, state := range []string{
		"Ready True Proved", "Ready True ScaledToZero", "Ready False Starting", "Ready False NotReady", "Ready False Timeout", "Ready False CatalogNotLoaded", "Ready False AuthRejected",
		"Served True Served", "Served False CatalogPending", "Served False NotAccepted", "Served Unknown Pending", "Served Unknown ScaledToZero",
	} {
		if !seen[state] {
			t.Errorf("no walk came to %q", state)
		}
	}
}

// checkServer holds the invariants of a server's status.
func (w *walker) checkServer(status mcpv1.MCPServerStatus) {
	w.t.Helper()
	is := func(t string) metav1.ConditionStatus {
		if c := meta.FindStatusCondition(status.Conditions, t); c != nil {
			return c.Status
		}
		return "-"
	}
	if is("Reconciling") == "True" && is("Stalled") == "True" {
		w.t.Error("both Reconciling and Stalled")
	}
	if is("Stalled") == "True" && is("Ready") != "False" {
		w.t.Errorf("Stalled, and Ready is %s", is("Ready"))
	}
	serving, failing := 0, 0
	for _, pod := range w.pods {
		if !podstate.TakesTraffic(pod) {
			continue
		}
		serving++
		if seen, ok := w.targets[string(pod.UID)]; ok && seen.Verdict == prober.Failing {
			failing++
		}
	}
	ready := meta.FindStatusCondition(status.Conditions, "Ready")
	if ready.Reason == mcpv1.ReasonProved && resources.HasPods(w.server) && (serving == 0 || failing > 0) {
		w.t.Errorf("Ready is Proved with %d pods that take traffic, %d of which fail", serving, failing)
	}
	if !resources.HasPods(w.server) {
		return
	}
	healthy, inSync := *status.HealthyReplicas, ptr.Deref(status.SyncedReplicas, 0)
	if int(healthy) > serving-failing || inSync > *status.ReadyReplicas || int(*status.ReadyReplicas) != serving {
		w.t.Errorf("%d healthy, %d synced, %d ready; %d take traffic, %d of which fail", healthy, inSync, *status.ReadyReplicas, serving, failing)
	}
	if serving == 0 && status.ToolCount != nil {
		w.t.Error("tools are counted that nobody serves")
	}
	if resources.HasPods(w.server) && resources.Replicas(w.server) == 0 && is("Ready") != "True" {
		w.t.Errorf("at zero Ready is %s", is("Ready"))
	}
}

// checkServed: Served is True only if each pod that takes traffic, as far as
// it was heard of, serves this very version.
func (w *walker) checkServed(conditions []metav1.Condition) {
	w.t.Helper()
	if !meta.IsStatusConditionTrue(conditions, mcpv1.ConditionServed) {
		return
	}
	want := catalog.CompileTool(w.tools[0]).EntryDigest
	for _, pod := range w.pods {
		seen, ok := w.targets[string(pod.UID)]
		if !podstate.TakesTraffic(pod) || !ok || seen.Verdict != prober.Proved {
			continue
		}
		if got, remembered := w.known[seen.Pod.CatalogDigest]; !remembered || got != want {
			w.t.Errorf("alpha is Served, and pod %s serves another version of it", pod.Name)
		}
	}
}

// checkRestart: had the operator started anew just now, before any probe, it
// would write nothing.
func (w *walker) checkRestart() {
	w.t.Helper()
	before := w.server.Status
	twin := *w.world
	twin.targets = maps.Clone(w.targets)
	twin.restart()
	// A start-up budget begins anew, unless it was over.
	twin.memory.endpointSince = w.memory.endpointSince
	if diff := cmp.Diff(jsonOf(w.t, before), jsonOf(w.t, twin.pass())); diff != "" {
		w.t.Errorf("a restart would write (-before +after):\n%s", diff)
	}
}
