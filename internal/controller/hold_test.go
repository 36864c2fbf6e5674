// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// TestRestartWritesNothing: an operator that has just started and knows
// nothing yet computes, byte for byte, the status that is there; and so it
// does with each further result that says what was known before.
func TestRestartWritesNothing(t *testing.T) {
	fail := func(outcome mcpprobe.Outcome) func(*world) {
		return func(w *world) {
			w.serving(2)
			w.pass()
			w.failing(w.pods[1], outcome, mcpprobe.StepInitialize)
		}
	}
	tests := map[string]struct {
		spec    string
		prepare func(*world)
	}{
		"tools proved":        {`{}`, serving3},
		"container proved":    {containerSpec, serving3},
		"external proved":     {externalSpec, external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone)},
		"external wants auth": {externalSpec, external(prober.AuthRequired, mcpprobe.AuthRequired, mcpprobe.StepInitialize)},
		"external rejects":    {externalSpec, external(prober.Failing, mcpprobe.AuthRejected, mcpprobe.StepInitialize)},
		"external never answered": {externalSpec, func(w *world) {
			w.memory.endpointSince = epoch
			external(prober.Failing, mcpprobe.DNSFailed, mcpprobe.StepDial)(w)
		}},
		"one fails":      {`{}`, fail(mcpprobe.Timeout)},
		"one unreadable": {containerSpec, fail(mcpprobe.NotMCP)},
		"all fail": {containerSpec, func(w *world) {
			w.serving(2)
			w.pass()
			w.failing(w.pods[0], mcpprobe.Timeout, mcpprobe.StepDial)
			w.failing(w.pods[1], mcpprobe.Timeout, mcpprobe.StepDial)
		}},
		"scaled to zero": {`replicas: 0`, func(w *world) { w.deploy() }},
		"catalog not loaded": {`{}`, func(w *world) {
			w.serving(2)
			w.pass()
			w.tool("alpha", `expression: {text: "'new'"}`)
			w.pass()
			w.later(time.Minute)
		}},
		"list mismatch": {`{}`, func(w *world) {
			w.serving(2)
			w.pass()
			w.later(time.Minute)
			r := w.report()
			r.Tools.Tools = r.Tools.Tools[:1]
			w.observe(w.pods[1], prober.Proved, r)
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.spec)
			test.prepare(w)
			before := w.pass()
			known, since := w.targets, w.memory.endpointSince
			w.restart()
			if since.IsZero() {
				w.memory.endpointSince = w.now
			}
			w.later(time.Second)
			same := func(when string) {
				t.Helper()
				if diff := cmp.Diff(jsonOf(t, before), jsonOf(t, w.pass())); diff != "" {
					t.Fatalf("%s the status differs (-before +after):\n%s", when, diff)
				}
			}
			same("after the restart")
			for id, target := range known {
				w.targets[id] = prober.TargetObservation{ID: id, Name: target.Name, Verdict: prober.Pending}
			}
			same("while the first probes run")
			for _, id := range sortedKeys(known) {
				w.targets[id] = known[id]
				if target := known[id]; target.Verdict == prober.Proved || len(known) == 1 {
					same("after the result of " + target.Name)
				}
			}
			same("after all results")
		})
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestProbesWithoutNews: another probe with the same facts, however long it
// took, changes nothing; a changed fact moves lastProbe.
func TestProbesWithoutNews(t *testing.T) {
	w := newWorld(t, `{}`)
	w.serving(3)
	before := w.pass()
	w.later(time.Hour)
	for _, pod := range w.pods {
		r := w.report()
		r.Latency, r.Steps = 900*time.Millisecond, []mcpprobe.StepTiming{{Step: mcpprobe.StepTools}}
		w.observe(pod, prober.Proved, r)
	}
	after := w.pass()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("nothing changed, the status did:\n%s", diff)
	}
	w.tool("gamma", `expression: {text: "'c'"}`)
	for _, pod := range w.pods {
		w.proved(pod)
	}
	w.later(time.Minute)
	after = w.pass()
	if *after.ToolCount != 3 || !after.LastProbe.Time.After(before.LastProbe.Time.Time) {
		t.Errorf("a tool came: count %v, last probe %v", *after.ToolCount, after.LastProbe)
	}
}

// TestRolloutHolds: pods come and go, one is proved after the other; Ready
// stays True and the catalog's facts stay.
func TestRolloutHolds(t *testing.T) {
	w := newWorld(t, `replicas: 2`)
	w.serving(2)
	first := w.pass()
	ready := func(when string) {
		t.Helper()
		status := w.pass()
		if got := condition(status.Conditions, "Ready"); got != "True Proved" {
			t.Errorf("%s Ready is %s", when, got)
		}
		for what, same := range map[string]bool{
			"tools": cmp.Equal(first.Tools, status.Tools), "count": *first.ToolCount == *status.ToolCount,
			"server": cmp.Equal(first.Server, status.Server), "url": first.URL == status.URL,
			"synced": condition(status.Conditions, "Synced") == "True Synced",
		} {
			if !same {
				t.Errorf("%s %s changed", when, what)
			}
		}
		if *status.HealthyReplicas > *status.ReadyReplicas || *status.ReadyReplicas > *status.Replicas {
			t.Errorf("%s %d healthy of %d ready of %d", when, *status.HealthyReplicas, *status.ReadyReplicas, *status.Replicas)
		}
		if *status.HealthyReplicas < 1 {
			t.Errorf("%s nobody is healthy", when)
		}
	}
	for range 2 {
		old := w.pods[0]
		w.deployment.Status.UpdatedReplicas, w.deployment.Status.AvailableReplicas = 1, 2
		young := w.pod(old.Name + "x")
		setReady(young, false)
		ready("while a pod starts")
		setReady(young, true)
		ready("when it takes traffic")
		w.observe(young, prober.Pending, nil)
		ready("while it is probed")
		w.proved(young)
		ready("when it is proved")
		old.DeletionTimestamp = &metav1.Time{Time: w.now}
		delete(w.targets, string(old.UID))
		ready("while the old one ends")
		w.pods = w.pods[1:]
		if w.pods[0] == old {
			t.Fatal("the wrong pod went")
		}
		ready("when it is gone")
	}
}

// TestCounts: replicas by state, and none of them invented.
func TestCounts(t *testing.T) {
	w := newWorld(t, containerSpec)
	w.serving(3)
	w.pass()
	w.failing(w.pods[0], mcpprobe.Timeout, mcpprobe.StepInitialize)
	w.observe(w.pods[1], prober.Pending, nil)
	status := w.pass()
	got := []int32{*status.Replicas, *status.ReadyReplicas, *status.HealthyReplicas}
	if diff := cmp.Diff([]int32{3, 3, 2}, got); diff != "" {
		t.Errorf("replicas, ready, healthy (-want +got):\n%s", diff)
	}
	if status.SyncedReplicas != nil {
		t.Errorf("a Container is synced: %d", *status.SyncedReplicas)
	}
	w.observe(w.pods[1], prober.Proved, w.report())
	w.pods[2].DeletionTimestamp = &metav1.Time{Time: w.now}
	status = w.pass()
	got = []int32{*status.Replicas, *status.ReadyReplicas, *status.HealthyReplicas}
	if diff := cmp.Diff([]int32{2, 2, 1}, got); diff != "" {
		t.Errorf("replicas, ready, healthy (-want +got):\n%s", diff)
	}
}

// TestStartupWakes: a pass that waits for the budget asks to be called when it
// is over, and not before.
func TestStartupWakes(t *testing.T) {
	w := newWorld(t, `startupTimeoutSeconds: 60`)
	unproved(w)
	w.later(20 * time.Second)
	w.pass()
	if w.requeue < 40*time.Second || w.requeue > 41*time.Second {
		t.Errorf("asked for another pass after %s, 40s are left", w.requeue)
	}
	w.later(w.requeue)
	if status := w.pass(); condition(status.Conditions, "Stalled") != "True StartupTimedOut" {
		t.Errorf("Stalled is %s", condition(status.Conditions, "Stalled"))
	}
	// A new template has time again.
	w.pods[0].Labels["pod-template-hash"] = "hash2"
	w.pods[0].CreationTimestamp = metav1.NewTime(w.now)
	if status := w.pass(); condition(status.Conditions, "Stalled") != "-" || condition(status.Conditions, "Reconciling") == "-" {
		t.Error("a new template has no time to start")
	}
}

// TestManyTools: status names so many tools, and counts the rest.
func TestManyTools(t *testing.T) {
	w := newWorld(t, containerSpec)
	w.serving(1)
	r := w.report()
	r.Tools.Tools = nil
	for i := range mcpv1.MaxStatusTools + 7 {
		r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: string(rune('a'+i%26)) + time.Duration(i).String()})
	}
	w.observe(w.pods[0], prober.Proved, r)
	status := w.pass()
	if len(status.Tools) != mcpv1.MaxStatusTools || *status.ToolsOmitted != 7 || *status.ToolCount != mcpv1.MaxStatusTools+7 {
		t.Errorf("%d named, %v omitted, %d counted", len(status.Tools), status.ToolsOmitted, *status.ToolCount)
	}
}

// TestToolCountKnowsUnknown: no list is not an empty list (A02).
func TestToolCountKnowsUnknown(t *testing.T) {
	zero := int32(0)
	for state, want := range map[mcpprobe.ToolsState]*int32{
		mcpprobe.ToolsUnknown: nil, mcpprobe.ToolsNotDeclared: &zero, mcpprobe.ToolsListed: &zero,
	} {
		w := newWorld(t, containerSpec)
		w.serving(1)
		r := w.report()
		r.Tools = mcpprobe.ToolList{State: state}
		w.observe(w.pods[0], prober.Proved, r)
		if diff := cmp.Diff(want, w.pass().ToolCount); diff != "" {
			t.Errorf("%q (-want +got):\n%s", state, diff)
		}
	}
}
