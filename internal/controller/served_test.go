// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestServedOfOtherKinds: resources, templates and prompts are proved by their
// lists as tools are, and what differs is named.
func TestServedOfOtherKinds(t *testing.T) {
	text := "hello"
	prompt := func(text string) *mcpv1.MCPPrompt {
		p := &mcpv1.MCPPrompt{ObjectMeta: metav1.ObjectMeta{Name: "alpha"}} // A tool has that name as well.
		p.Spec.Messages = []mcpv1.PromptMessage{{Role: mcpv1.RoleUser, Content: mcpv1.PromptContent{Type: mcpv1.ContentText, Text: text}}}
		return p
	}
	resource := func(name string, change func(*mcpv1.MCPResourceSpec)) *mcpv1.MCPResource {
		r := &mcpv1.MCPResource{ObjectMeta: metav1.ObjectMeta{Name: name}}
		change(&r.Spec)
		return r
	}
	others := []mcpv1.Registration{
		resource("plain", func(s *mcpv1.MCPResourceSpec) { s.URI, s.Text = "docs://a\u202e", &text }),
		resource("template", func(s *mcpv1.MCPResourceSpec) { s.URITemplate, s.Text = "docs://x/{y}", &text }),
		resource("mounted", func(s *mcpv1.MCPResourceSpec) {
			s.URI, s.SecretKeyRef = "docs://secret", &mcpv1.SecretKeyRef{Name: "s", Key: "k"}
		}),
		prompt("hello"),
	}
	w := newWorld(t, `{}`)
	w.secret("s", "k")
	for _, r := range others {
		w.other(r)
	}
	w.serving(1)
	served := func() map[string]string {
		status := w.pass()
		out := map[string]string{"Synced": condition(status.Conditions, "Synced")}
		for id, v := range registrationVerdicts(w.scope(), conditionVerdict(status.Conditions, mcpv1.ConditionSynced)) {
			if v.served != nil {
				out[id.String()] = string(v.served.status) + " " + v.served.reason
			}
		}
		return out
	}
	want := map[string]string{
		"Synced": "True Synced", "MCPTool alpha": isServed, "MCPTool beta": isServed, "MCPPrompt alpha": isServed,
		"MCPResource plain": isServed, "MCPResource template": isServed, "MCPResource mounted": isServed,
	}
	if diff := cmp.Diff(want, served()); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if status := w.pass(); *status.ResourceCount != 2 || *status.PromptCount != 1 || *status.ToolCount != 2 {
		t.Errorf("counts %d, %d, %d", *status.ToolCount, *status.ResourceCount, *status.PromptCount)
	}

	// An edit that changes no list.
	old := w.report()
	w.others = w.others[:3]
	w.other(prompt("something else"))
	w.others[3].SetGeneration(2)
	w.reporting("web-1", old)
	if got := served()["MCPPrompt alpha"]; got != isPending {
		t.Errorf("an edited prompt is %s", got)
	}
	w.reporting("web-1", w.report())
	if diff := cmp.Diff(want, served()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}

	// Lists that lack one, or have one more, or were not read.
	for name, change := range map[string]func(*mcpprobe.Report){
		"template docs://x/{y} is not listed": func(r *mcpprobe.Report) { r.Templates.Entries = nil },
		"1 prompts more than wanted": func(r *mcpprobe.Report) {
			r.Prompts.Entries = append(r.Prompts.Entries, mcpprobe.Entry{Name: "zzz"})
		},
		"docs://secret is another definition": func(r *mcpprobe.Report) { r.Resources.Entries[0].Digest = "v1:sha256:x" },
		"not read: alpha is not listed":       func(r *mcpprobe.Report) { r.Prompts = mcpprobe.EntryList{} },
	} {
		r := w.report()
		change(r)
		w.reporting("web-1", r)
		_, part, found := strings.Cut(name, ": ")
		if !found {
			part = strings.TrimPrefix(name, "template ")
		}
		if got := w.scope().listDiff(r); got != part {
			t.Errorf("%s: %q", name, got)
		}
		if got := served()["Synced"]; got == "True Synced" {
			t.Errorf("%s: synced", name)
		}
	}
}

// TestStatusOfOtherKinds: what their status alone has.
func TestStatusOfOtherKinds(t *testing.T) {
	text := "x"
	objects := map[catalog.Kind]mcpv1.Registration{
		catalog.KindTool:     &mcpv1.MCPTool{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
		catalog.KindResource: &mcpv1.MCPResource{Spec: mcpv1.MCPResourceSpec{URITemplate: "x:{y}", Text: &text}},
		catalog.KindPrompt:   &mcpv1.MCPPrompt{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: mcpv1.MCPPromptSpec{Name: "b"}},
	}
	for _, kind := range registrationKinds {
		obj := objects[kind.kind]
		if catalog.KindOf(obj) != kind.kind || catalog.KindOf(kind.object()) != kind.kind {
			t.Errorf("%s makes %T", kind.kind, kind.object())
		}
		kind.describe(obj)
	}
	if s := objects[catalog.KindTool].(*mcpv1.MCPTool).Status; s.ToolName != "a" || s.Handler != "none" {
		t.Errorf("%+v", s)
	}
	if s := objects[catalog.KindResource].(*mcpv1.MCPResource).Status; s.URI != "x:{y}" || s.Source != "text" {
		t.Errorf("%+v", s)
	}
	if s := objects[catalog.KindPrompt].(*mcpv1.MCPPrompt).Status; s.PromptName != "b" {
		t.Errorf("%+v", s)
	}
}
