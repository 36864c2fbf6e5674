// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// toolPass makes a pass over the server and then over each tool, and gives
// the conditions of tool name on the server.
func (w *world) toolPass(name string) []metav1.Condition {
	w.t.Helper()
	status := w.pass()
	verdicts := registrationVerdicts(w.scope(), conditionVerdict(status.Conditions, mcpv1.ConditionSynced))
	var out []metav1.Condition
	for i, tool := range w.tools {
		v := verdicts[catalog.IDOf(tool)]
		written, complete := registrationStatus(tool, []onServer{{name: "web", exists: true, verdict: &v}}, metav1.NewTime(w.now))
		if !complete {
			w.t.Fatalf("the status of %s is not complete", tool.Name)
		}
		w.tools[i] = tool.DeepCopy()
		w.tools[i].Status.RegistrationStatus = written
		checkConditions(w.t, written.Conditions, tool.Generation)
		checkConditions(w.t, written.Servers[0].Conditions, tool.Generation)
		if tool.Name == name {
			out = written.Servers[0].Conditions
		}
	}
	return out
}

// reporting says that pod reports and lists the wanted catalog of other, a
// world in another state.
func (w *world) reporting(pod string, other *mcpprobe.Report) {
	for _, p := range w.pods {
		if p.Name == pod {
			w.observe(p, prober.Proved, other)
		}
	}
}

const (
	isServed  = "True Served"
	isPending = "False CatalogPending"
	isUnknown = "Unknown Pending"
)

// TestServedIsNeverTrueForAnotherVersion walks an edit of an expression, which
// changes no list, through three replicas.
func TestServedIsNeverTrueForAnotherVersion(t *testing.T) {
	w := newWorld(t, `replicas: 3`)
	w.serving(3)
	expect := func(when, tool, want string) {
		t.Helper()
		if got := condition(w.toolPass(tool), "Served"); got != want {
			t.Errorf("%s %s is %s, want %s", when, tool, got, want)
		}
	}
	expect("at first", "alpha", isServed)
	old := w.report()

	w.tool("alpha", `expression: {text: "'new'"}`)
	expect("after the edit", "alpha", isPending)
	expect("after the edit", "beta", isServed)
	young := w.report()
	w.reporting("web-1", young)
	w.reporting("web-2", young)
	expect("with two of three", "alpha", isPending)
	expect("with two of three", "beta", isServed)
	w.reporting("web-3", young)
	expect("with all", "alpha", isServed)

	// A pod that falls back to what it had before is seen at once.
	w.reporting("web-2", old)
	expect("when one falls back", "alpha", isPending)
	w.reporting("web-2", young)

	// Changed while nobody watched: what the old catalog served is not
	// remembered, so Served of the new version is not known, never True.
	w.tool("alpha", `expression: {text: "'newer'"}`)
	known := w.targets
	w.restart()
	w.targets = known
	expect("changed during a restart", "alpha", isUnknown)
	expect("changed during a restart", "beta", isServed) // held: its generation is the same
	for _, pod := range w.pods {
		w.proved(pod)
	}
	expect("in the end", "alpha", isServed)
}

// TestServedNeedsTheList: the right digest with a list that lacks the tool is
// not enough.
func TestServedNeedsTheList(t *testing.T) {
	w := newWorld(t, `{}`)
	w.serving(1)
	r := w.report()
	r.Tools.Tools = r.Tools.Tools[1:]
	w.reporting("web-1", r)
	if got := condition(w.toolPass("alpha"), "Served"); got != isPending {
		t.Errorf("a tool that is not listed is %s", got)
	}
	if got := condition(w.toolPass("beta"), "Served"); got != isServed {
		t.Errorf("its neighbour is %s", got)
	}
}

// TestServedNeedsTheMount: what names a Secret that the pods do not mount is
// not served, and the reason says that pods are replaced.
func TestServedNeedsTheMount(t *testing.T) {
	w := newWorld(t, `{}`)
	w.serving(1)
	w.toolPass("alpha")
	w.secret("s", "k")
	w.tool("gamma", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: s, key: k}}]}`)
	w.proved(w.pods[0]) // it has loaded the catalog already
	if got := condition(w.toolPass("gamma"), "Served"); got != "False RolloutForCredentials" {
		t.Errorf("gamma is %s", got)
	}
	if got := condition(w.toolPass("alpha"), "Served"); got != isServed {
		t.Errorf("alpha is %s", got)
	}
}

// TestServedHolds: rollouts, restarts, a server without pods and a failing
// replica write no tool's status.
func TestServedHolds(t *testing.T) {
	w := newWorld(t, `replicas: 2`)
	w.serving(2)
	w.toolPass("alpha")
	before := w.tools[0].Status
	same := func(when string) {
		t.Helper()
		w.toolPass("alpha")
		if !equal(before, w.tools[0].Status) {
			t.Errorf("%s the tool's status changed:\n%v\n%v", when, before, w.tools[0].Status)
		}
	}
	known := w.targets
	w.restart()
	same("after a restart")
	w.targets = known
	same("with results again")
	young := w.pod("web-3")
	same("with a pod that is not probed yet")
	w.proved(young)
	same("when it is proved")
	w.failing(young, mcpprobe.Timeout, mcpprobe.StepInitialize)
	same("when it fails")
	for _, pod := range w.pods {
		setReady(pod, false)
	}
	same("without a pod that takes traffic")
	w.pods = nil
	same("without pods")
}

// TestServedWithoutPods: zero and suspend are told; coming back, nothing that
// was said of no pods is held.
func TestServedWithoutPods(t *testing.T) {
	w := newWorld(t, `replicas: 0`)
	w.deploy()
	if got := condition(w.toolPass("alpha"), "Served"); got != "Unknown ScaledToZero" {
		t.Errorf("at zero it is %s", got)
	}
	w.spec(`suspend: true`)
	if got := condition(w.toolPass("alpha"), "Served"); got != "Unknown Suspended" {
		t.Errorf("suspended it is %s", got)
	}
	w.spec(`replicas: 1`)
	if got := condition(w.toolPass("alpha"), "Served"); got != isUnknown {
		t.Errorf("on its way back it is %s", got)
	}
	w.serving(1)
	if got := condition(w.toolPass("alpha"), "Served"); got != isServed {
		t.Errorf("back again it is %s", got)
	}
}

// TestToolVerdictsOfOthers: refused tools and servers that serve none.
func TestToolVerdictsOfOthers(t *testing.T) {
	w := newWorld(t, `tools: {exclude: [beta]}`)
	w.tool("broken", `expression: {text: "1 +"}`)
	w.tool("off", `{suspend: true, expression: {text: "''"}}`)
	w.serving(1)
	for tool, want := range map[string][3]string{
		"alpha":  {"True Accepted", "True ResolvedRefs", isServed},
		"beta":   {"False Filtered", "True ResolvedRefs", "False NotAccepted"},
		"broken": {"False InvalidExpression", "True ResolvedRefs", "False NotAccepted"},
		"off":    {"False Suspended", "True ResolvedRefs", "False NotAccepted"},
	} {
		conditions := w.toolPass(tool)
		for i, c := range []string{"Accepted", "ResolvedRefs", "Served"} {
			if got := condition(conditions, c); got != want[i] {
				t.Errorf("%s of %s is %s, want %s", c, tool, got, want[i])
			}
		}
	}
	w = newWorld(t, containerSpec)
	w.tool("alpha", `expression: {text: "''"}`)
	w.serving(1)
	conditions := w.toolPass("alpha")
	if got := condition(conditions, "Accepted"); got != "False ServerNotFronted" {
		t.Errorf("on a Container it is %s", got)
	}
}

// TestToolRefs: a missing Secret is told of the tool that names it and of no
// other.
func TestToolRefs(t *testing.T) {
	w := newWorld(t, `{}`)
	w.tool("alpha", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: late, key: token}}]}`)
	w.serving(1)
	for want, change := range map[string]func(){
		"False SecretNotFound":    func() { w.noSecret("late") },
		"False SecretKeyNotFound": func() { w.secret("late", "other") },
		"True ResolvedRefs":       func() { w.secret("late", "token") },
	} {
		change()
		if got := condition(w.toolPass("alpha"), "ResolvedRefs"); got != want {
			t.Errorf("alpha is %s, want %s", got, want)
		}
		if got := condition(w.toolPass("beta"), "ResolvedRefs"); got != "True ResolvedRefs" {
			t.Errorf("beta is %s", got)
		}
	}
}
