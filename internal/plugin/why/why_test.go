// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

// TestStates: each state that the operator tells has the cause that it tells,
// found in the step that it belongs to.
func TestStates(t *testing.T) {
	tests := []struct {
		state   string
		change  func(*Facts)
		verdict Verdict
		cause   string
		reason  string
		also    string
	}{
		{state: "proved", verdict: Ready},
		{state: "edited", verdict: NotKnown, cause: stepOperator, reason: mcpv1.ReasonPending},
		{state: "zero", verdict: Ready, cause: stepPods, reason: mcpv1.ReasonScaledToZero},
		{state: "suspended", verdict: Ready, cause: stepPods, reason: mcpv1.ReasonSuspended},
		{state: "wants-auth", verdict: Ready, also: stepProbe},
		{state: "auth-rejected", change: func(f *Facts) {
			f.Named[NamedID{catalog.RefSecret, "wrong"}] = Named{Found: true, Keys: []string{"key"}}
		},
			verdict: NotReady, cause: stepProbe, reason: "AuthRejected"},
		{state: "auth-rejected", change: func(f *Facts) { f.Named[NamedID{catalog.RefSecret, "wrong"}] = Named{Found: true} },
			verdict: NotReady, cause: stepReferences, reason: mcpv1.ReasonSecretKeyNotFound, also: stepProbe},
		{state: "failing", verdict: NotReady, cause: stepProbe, reason: "NotMCP"},
		{state: "never-started", verdict: NotReady, cause: stepProbe, reason: "NotMCP"},
		{state: "starting", verdict: NotReady, cause: stepProbe, reason: "NotMCP"},
		{state: "env-missing", change: func(f *Facts) { f.Named[NamedID{catalog.RefSecret, "nowhere"}] = Named{} },
			verdict: NotReady, cause: stepReferences, reason: mcpv1.ReasonSecretNotFound},
		{state: "env-missing", change: func(f *Facts) { f.Named[NamedID{catalog.RefSecret, "nowhere"}] = Named{Unread: true} },
			verdict: NotReady, cause: stepReferences, reason: mcpv1.ReasonSecretNotFound},
		{state: "no-traffic", change: func(f *Facts) { f.exits(3) }, verdict: NotReady, cause: stepPods, reason: mcpv1.ReasonCrashLoopBackOff},
		{state: "tool-secret-missing", verdict: Ready, also: stepReferences},
		{state: "rolling-out", change: func(f *Facts) { f.waitsFor("ImagePullBackOff", "no such image") }, verdict: Ready, also: stepPods},
		{state: "contract-broken", verdict: Ready, also: stepContract},
		{state: "an-upstream-down", verdict: Ready, also: stepUpstreams},
		{state: "upstreams-gone", verdict: NotReady, cause: stepUpstreams, reason: mcpv1.ReasonUpstreamsUnavailable},
		{state: "invalid", verdict: NotReady, cause: stepSpec, reason: mcpv1.ReasonInvalidFilter},
		{state: "in-the-way", verdict: NotReady, cause: stepDeployment, reason: mcpv1.ReasonForeignObject},
		{state: "stale", verdict: NotKnown, cause: stepProbe, reason: mcpv1.ReasonStale},
		{state: "unseen", verdict: NotKnown, cause: stepOperator, reason: mcpv1.ReasonPending},
		{state: "catalog-not-loaded", verdict: NotReady, cause: stepReport, reason: mcpv1.ReasonCatalogNotLoaded},
		{state: "catalog-pending", verdict: Ready, also: stepReport},
	}
	for _, test := range tests {
		t.Run(test.state, func(t *testing.T) {
			f := seen(t, test.state)
			if test.change != nil {
				test.change(f)
			}
			d := Diagnose(f)
			checkCause(t, d, test.verdict, test.cause, test.reason)
			if test.also != "" && !holds(d.Also, test.also) {
				t.Errorf("%s is not told of: %+v", test.also, d.Also)
			}
			if d.Cause != nil && d.Cause.State == Broken && len(d.Cause.Do) == 0 {
				t.Errorf("nothing to do about %+v", d.Cause)
			}
		})
	}
}

func checkCause(t *testing.T, d *Diagnosis, verdict Verdict, cause, reason string) {
	t.Helper()
	if d.Verdict != verdict {
		t.Errorf("verdict %s, want %s", d.Verdict, verdict)
	}
	switch {
	case cause == "" && d.Cause != nil:
		t.Errorf("cause %+v, want none", d.Cause)
	case cause != "" && (d.Cause == nil || d.Cause.Name != cause || d.Cause.Reason != reason):
		t.Errorf("cause %+v, want %s %s", d.Cause, cause, reason)
	}
}

func holds(steps []Step, name string) bool {
	for _, s := range steps {
		if s.Name == name {
			return true
		}
	}
	return false
}

// TestOperatorDown: an old status is not believed; what the pods show is.
func TestOperatorDown(t *testing.T) {
	tests := map[string]struct {
		state         string
		change        func(*Facts)
		cause, reason string
	}{
		"an old Ready":             {state: "proved", cause: stepOperator},
		"pods that exit":           {state: "proved", change: func(f *Facts) { f.exits(1) }, cause: stepPods, reason: mcpv1.ReasonCrashLoopBackOff},
		"an old failure":           {state: "failing", cause: stepOperator},
		"no Deployment":            {state: "unseen", change: func(f *Facts) { f.Deployment = nil }, cause: stepDeployment},
		"a spec that cannot work":  {state: "invalid", cause: stepSpec, reason: mcpv1.ReasonInvalidFilter},
		"an edit that nobody sees": {state: "invalid", change: func(f *Facts) { f.Server.Generation++ }, cause: stepSpec, reason: mcpv1.ReasonInvalidFilter},
		"a Secret that is gone": {state: "env-missing", change: func(f *Facts) { f.Named[NamedID{catalog.RefSecret, "nowhere"}] = Named{} },
			cause: stepReferences, reason: mcpv1.ReasonSecretNotFound},
		"no operator ever": {state: "unseen", change: func(f *Facts) {
			f.Life = operator.Life{Known: true, Now: noon}
			f.Pods = append(f.Pods, pod("unseen-1", true))
		}, cause: stepOperator},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := seen(t, test.state)
			f.Life = down
			if test.change != nil {
				test.change(f)
			}
			d := Diagnose(f)
			checkCause(t, d, NotKnown, test.cause, test.reason)
			for _, s := range d.Chain {
				if s.State == OK && (s.Name == stepProbe || s.Name == stepReport || s.Name == stepUpstreams || s.Name == stepContract) {
					t.Errorf("an old status is believed: %+v", s)
				}
			}
		})
	}
}

// TestQuota: what refuses the pods is told in the API server's words.
func TestQuota(t *testing.T) {
	f := seen(t, "never-started")
	f.Pods = nil
	f.Server.Status.Conditions = nil
	f.Life = down
	f.Deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: no-pods",
	}}
	d := Diagnose(f)
	checkCause(t, d, NotKnown, stepDeployment, mcpv1.ReasonPodsNotCreated)
	if got := strings.Join(d.Cause.Evidence, "\n"); !strings.Contains(got, "exceeded quota: no-pods") {
		t.Errorf("evidence %q", got)
	}
}

// TestEvidence: what the cluster says of a pod is shown as one safe line each.
func TestEvidence(t *testing.T) {
	f := seen(t, "no-traffic")
	f.exits(3)
	name := f.Pods[0].Name
	f.Events = []Event{{On: "Pod/" + name, Reason: "BackOff", Message: "Back-off\n\x1b[31mrestarting", Count: 7, Last: noon}, {On: "Pod/other", Reason: "Killing", Last: noon}}
	f.Logs[name] = []string{"panic: \x1b]0;title\x07no key", strings.Repeat("x", 2*maxPlain)}
	got := Diagnose(f).Cause.Evidence
	all := strings.Join(got, "\n")
	for _, want := range []string{"ended 20s ago with status 3 (Error), restarted 4 times", "Event BackOff, 0s ago (7 times): Back-off ?[31mrestarting", "panic: ?]0;title?no key"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
	for _, line := range got {
		if strings.ContainsAny(line, "\n\x1b\x07") || len(line) > maxPlain+100 {
			t.Errorf("line %q", line)
		}
	}
	if strings.Contains(all, "Killing") {
		t.Error("an event of another pod is shown")
	}
}

// TestUnread: what the user may not read is noted, and the diagnosis stands.
func TestUnread(t *testing.T) {
	f := seen(t, "failing")
	f.Unread = map[string]string{"pods": "you may not read them", "deployments": "you may not read them", "events": "you may not read them"}
	f.Pods, f.Deployment = nil, nil
	f.Life = operator.Life{Unknown: "you may not list Leases in all namespaces"}
	d := Diagnose(f)
	checkCause(t, d, NotReady, stepProbe, "NotMCP")
	if len(d.Notes) != 3 || !strings.Contains(d.Operator, "not known") {
		t.Errorf("notes %q, operator %q", d.Notes, d.Operator)
	}
}

func TestSplit(t *testing.T) {
	tests := map[string]struct{ what, do string }{
		"The connection was refused: nothing listens on the port. Read: kubectl logs a-1 -n team-a. Check that the port is right.": {
			"The connection was refused: nothing listens on the port.", "Read: kubectl logs a-1 -n team-a.|Check that the port is right."},
		"Image example.test/none:1.2 of container server of pod a cannot be pulled. Check the name, and whether it needs spec.workload.imagePullSecrets.": {
			"Image example.test/none:1.2 of container server of pod a cannot be pulled.", "Check the name, and whether it needs spec.workload.imagePullSecrets."},
		"MCPTool a has the name b too and wins. Change spec.name of one, or delete one.": {"MCPTool a has the name b too and wins.", "Change spec.name of one, or delete one."},
		"Secret a has no key b. Add it.":                                                 {"Secret a has no key b.", "Add it."},
		"Read this.":                                                                     {"Read this.", ""},
		"All is well.":                                                                   {"All is well.", ""},
	}
	for message, want := range tests {
		what, do := split(message)
		if what != want.what || strings.Join(do, "|") != want.do {
			t.Errorf("%q: %q, %q", message, what, do)
		}
	}
}
