// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const twoUpstreams = `upstreams: [{name: orders, url: "http://orders.test/mcp", prefix: o_}, {name: vendor, url: "http://vendor.test/mcp", prefix: v_}]`

// up is what a pod reports of an upstream that answers, down of one that does not.
func up(name string, tools int) podreport.Upstream {
	return podreport.Upstream{Name: name, State: podreport.UpstreamReady, Protocol: "2026-07-28", Tools: tools}
}

func down(name string) podreport.Upstream {
	return podreport.Upstream{Name: name, State: podreport.UpstreamUnavailable, Reason: "ConnectionRefused"}
}

// fronting brings one replica for each list of what it reports; it lists the
// declared tools and those named.
func (w *world) fronting(listed []string, reports ...[]podreport.Upstream) {
	w.t.Helper()
	w.deploy()
	for i, upstreams := range reports {
		r := w.report()
		r.Pod.Upstreams = upstreams
		for _, name := range listed {
			r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: name, Digest: "v1:sha256:" + name})
		}
		w.observe(w.pod(fmt.Sprintf("web-%d", i+1)), prober.Proved, r)
	}
	w.complete()
}

func observed(status mcpv1.MCPServerStatus) string {
	var out []string
	for _, u := range status.Upstreams {
		tools := "?"
		if u.Tools != nil {
			tools = fmt.Sprint(*u.Tools)
		}
		out = append(out, strings.Join([]string{u.Name, u.State, u.Reason, tools}, " "))
	}
	return strings.Join(out, ", ")
}

func TestUpstreamStates(t *testing.T) {
	for name, test := range map[string]struct {
		reports                        [][]podreport.Upstream
		ready, upstreams, synced, seen string
	}{
		"all answer": {
			[][]podreport.Upstream{{up("orders", 1), up("vendor", 0)}},
			"True Proved", "True UpstreamsReady", "True Synced", "orders Ready  1, vendor Ready  0",
		},
		"one is down on one replica": {
			[][]podreport.Upstream{{up("orders", 1), up("vendor", 0)}, {down("orders"), up("vendor", 0)}},
			"True Proved", "False UpstreamsUnavailable", "True Synced", "orders Unavailable ConnectionRefused 0, vendor Ready  0",
		},
		"one is yet to answer": {
			[][]podreport.Upstream{{up("orders", 1), {Name: "vendor", State: podreport.UpstreamPending}}},
			"True Proved", "Unknown Pending", "True Synced", "orders Ready  1, vendor Pending  0",
		},
		"not reported yet": {
			[][]podreport.Upstream{nil}, "True Proved", "Unknown Pending", "True Synced", "orders Pending  ?, vendor Pending  ?",
		},
		"all down, but tools are declared": {
			[][]podreport.Upstream{{down("orders"), down("vendor")}},
			"True Proved", "False UpstreamsUnavailable", "True Synced", "orders Unavailable ConnectionRefused 0, vendor Unavailable ConnectionRefused 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, twoUpstreams)
			w.spec(twoUpstreams)
			w.fronting([]string{"o_x"}, test.reports...)
			status := w.pass()
			got := []string{
				condition(status.Conditions, mcpv1.ConditionReady), condition(status.Conditions, mcpv1.ConditionUpstreamsReady),
				condition(status.Conditions, mcpv1.ConditionSynced), observed(status),
			}
			if !slices.Equal(got, []string{test.ready, test.upstreams, test.synced, test.seen}) {
				t.Errorf("got %q", got)
			}
			if status.ToolCount == nil || *status.ToolCount != 3 {
				t.Errorf("toolCount %v, want that of the wire", status.ToolCount)
			}
			if at := slices.IndexFunc(status.Tools, func(o mcpv1.ObservedTool) bool { return o.Name == "o_x" }); at < 0 || status.Tools[at].Source != "upstream/orders" {
				t.Errorf("tools %+v", status.Tools)
			}
		})
	}
}

// TestUpstreamsHeld: while no replica says anything, what was known stays.
func TestUpstreamsHeld(t *testing.T) {
	w := newWorld(t, twoUpstreams)
	w.fronting(nil, []podreport.Upstream{up("orders", 1), down("vendor")})
	before := w.pass()
	w.restart()
	after := w.pass()
	if observed(before) != observed(after) || condition(after.Conditions, mcpv1.ConditionUpstreamsReady) != "False UpstreamsUnavailable" {
		t.Errorf("%s became %s", observed(before), observed(after))
	}
}

// TestAllGoneWithUpstreams: a server that has nothing left to serve is not
// Ready, and comes back.
func TestAllGoneWithUpstreams(t *testing.T) {
	w := newWorld(t, twoUpstreams)
	w.tools = nil
	w.fronting(nil, []podreport.Upstream{down("orders"), up("vendor", 0)})
	status := w.pass()
	if got := condition(status.Conditions, mcpv1.ConditionReady); got != "False UpstreamsUnavailable" {
		t.Errorf("Ready is %s", got)
	}
	for _, kind := range []string{mcpv1.ConditionStalled, mcpv1.ConditionReconciling} {
		if got := condition(status.Conditions, kind); got != "-" {
			t.Errorf("%s is %s", kind, got)
		}
	}
	if status.ToolCount == nil || *status.ToolCount != 0 {
		t.Errorf("toolCount %v", status.ToolCount)
	}
	w.pods = nil
	w.fronting([]string{"o_x"}, []podreport.Upstream{up("orders", 1), up("vendor", 0)})
	if got := condition(w.pass().Conditions, mcpv1.ConditionReady); got != "True Proved" {
		t.Errorf("Ready is %s", got)
	}
}

func TestUnresolvedUpstreams(t *testing.T) {
	external := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "vendor"}, Spec: mcpv1.MCPServerSpec{Type: mcpv1.TypeExternal, External: &mcpv1.Connection{URL: "http://vendor.test"}}}
	external.Status.Conditions = []metav1.Condition{{Type: mcpv1.ConditionHealthy, Status: metav1.ConditionUnknown, Reason: mcpv1.ReasonAuthRequired}}
	front := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "front"}}
	front.Spec.Upstreams = []mcpv1.Upstream{{Name: "x", ServerRef: &mcpv1.UpstreamServerRef{Name: "web"}}}
	for name, test := range map[string]struct{ spec, upstreams, refs, seen string }{
		"missing": {"upstreams: [{name: a, serverRef: {name: nope}}]", "False ServerNotFound", "False ServerNotFound", "a Unresolved ServerNotFound ?"},
		"circle":  {"upstreams: [{name: a, serverRef: {name: front}}]", "False UpstreamCycle", "True ResolvedRefs", "a Unresolved UpstreamCycle ?"},
		"itself":  {"upstreams: [{name: a, serverRef: {name: web}}]", "False UpstreamCycle", "True ResolvedRefs", "a Unresolved UpstreamCycle ?"},
		"auth":    {"upstreams: [{name: a, serverRef: {name: vendor}}]", "False UpstreamAuthRequired", "True ResolvedRefs", "a Unresolved UpstreamAuthRequired ?"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.spec)
			w.neighbours = map[string]*mcpv1.MCPServer{"vendor": external, "front": front}
			w.serving(1)
			status := w.pass()
			got := []string{
				condition(status.Conditions, mcpv1.ConditionUpstreamsReady), condition(status.Conditions, mcpv1.ConditionResolvedRefs), observed(status),
				condition(status.Conditions, mcpv1.ConditionReady),
			}
			if !slices.Equal(got, []string{test.upstreams, test.refs, test.seen, "True Proved"}) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// TestCutToolsAreNamed and what else is odd is told.
func TestCutToolsAreNamed(t *testing.T) {
	w := newWorld(t, twoUpstreams)
	w.fronting(nil, []podreport.Upstream{up("orders", 1), up("vendor", 0)})
	for id, target := range w.targets {
		target.Pod.NotServed = []podreport.NotServed{{Kind: "tool", Name: "o_b", Reason: podreport.ReasonOverMax}, {Kind: "tool", Name: "o_c", Reason: podreport.ReasonConflict}}
		target.Pod.Flagged = []podreport.NotServed{{Kind: "tool", Name: "o_d", Reason: podreport.ReasonSchemaNotChecked}}
		w.targets[id] = target
	}
	status := w.pass()
	v, _ := held(status.Conditions, mcpv1.ConditionUpstreamsReady)
	if !slices.Equal(status.ToolsCut, []string{"o_b"}) || !strings.Contains(v.message, "SchemaNotChecked") || !strings.Contains(v.message, "o_c first") {
		t.Errorf("cut %v, %s", status.ToolsCut, v.message)
	}
}

// TestMissingSecretOfUpstream harms nothing else.
func TestMissingSecretOfUpstream(t *testing.T) {
	w := newWorld(t, `upstreams: [{name: a, url: "http://a.test", headers: [{name: Authorization, secretKeyRef: {name: s, key: k}}]}]`)
	w.noSecret("s")
	w.fronting(nil, []podreport.Upstream{{Name: "a", State: podreport.UpstreamUnavailable, Reason: "CredentialMissing"}})
	status := w.pass()
	if got := condition(status.Conditions, mcpv1.ConditionResolvedRefs); got != "False SecretNotFound" {
		t.Errorf("ResolvedRefs is %s", got)
	}
	if got := condition(status.Conditions, mcpv1.ConditionReady); got != "True Proved" {
		t.Errorf("Ready is %s", got)
	}
}

// child is what a pod reports of a child that does not answer.
func child(reason string, c *podreport.Child) podreport.Upstream {
	return podreport.Upstream{Name: serverconfig.StdioUpstream, State: podreport.UpstreamUnavailable, Reason: reason, Child: c}
}

// running is what a pod reports of a child that answers.
func running(c podreport.Child) podreport.Upstream {
	out := up(serverconfig.StdioUpstream, 1)
	c.State = podreport.ChildRunning
	out.Child = &c
	return out
}

// TestChildStates: a server of type Stdio is what its child is, and says how
// that ended.
func TestChildStates(t *testing.T) {
	const spec = `{type: Stdio, stdio: {image: node, command: [/usr/bin/npx, -y, x]}}`
	for name, test := range map[string]struct {
		reported              podreport.Upstream
		ready, upstreams, say string
	}{
		"answers":             {up(serverconfig.StdioUpstream, 1), "True Proved", "True UpstreamsReady", "All upstreams answer."},
		"exits":               {child("ChildExited", &podreport.Child{State: podreport.ChildExited, ExitCode: 1}), "False ChildExited", "False ChildExited", "npx ends with status 1 before it answers. Read: kubectl logs deploy/web-mcp -n ns."},
		"killed":              {child("ChildExited", &podreport.Child{State: podreport.ChildExited, Signal: "KILL"}), "False ChildExited", "False ChildExited", "npx was ended by signal KILL."},
		"hangs":               {child("Timeout", nil), "False ChildExited", "False ChildExited", "npx runs and does not answer (Timeout)."},
		"missing":             {child("StartFailed", nil), "False ChildExited", "False ChildExited", "npx cannot be started."},
		"runs again, killed":  {running(podreport.Child{Restarted: "ChildExited", Signal: "KILL"}), "True Proved", "True UpstreamsReady", "All upstreams answer. The child of pod web-1 was started again after it was ended by signal KILL."},
		"runs again, ended":   {running(podreport.Child{Restarted: "ChildExited"}), "True Proved", "True UpstreamsReady", "All upstreams answer. The child of pod web-1 was started again after it ended with status 0."},
		"runs again, was mum": {running(podreport.Child{Restarted: "Timeout"}), "True Proved", "True UpstreamsReady", "All upstreams answer. The child of pod web-1 was started again after it did not answer (Timeout)."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, spec)
			listed := []string{"read"}
			if test.ready != "True Proved" {
				listed = nil
			}
			w.fronting(listed, []podreport.Upstream{test.reported})
			status := w.pass()
			v, _ := held(status.Conditions, mcpv1.ConditionUpstreamsReady)
			got := []string{condition(status.Conditions, mcpv1.ConditionReady), condition(status.Conditions, mcpv1.ConditionUpstreamsReady), condition(status.Conditions, mcpv1.ConditionSynced)}
			if !slices.Equal(got, []string{test.ready, test.upstreams, "True Synced"}) || !strings.HasPrefix(v.message, test.say) {
				t.Errorf("got %q, %s", got, v.message)
			}
			known := test.ready == "True Proved"
			if healthy := *status.HealthyReplicas == 1; healthy != known || (status.ToolCount != nil) != known {
				t.Errorf("%d healthy replicas, %v tools", *status.HealthyReplicas, status.ToolCount)
			}
			if status.ServerImage != "server:1" {
				t.Errorf("serverImage %q", status.ServerImage)
			}
			for _, o := range status.Tools {
				if o.Source != "upstream/Stdio" {
					t.Errorf("%s comes from %s", o.Name, o.Source)
				}
			}
		})
	}
}

// TestStateNotShared: several children are several states, and status says so.
func TestStateNotShared(t *testing.T) {
	for replicas, want := range map[int]bool{1: false, 2: true} {
		w := newWorld(t, fmt.Sprintf(`{type: Stdio, replicas: %d, stdio: {image: node, command: [npx]}}`, replicas))
		answers := []podreport.Upstream{up(serverconfig.StdioUpstream, 0)}
		w.fronting(nil, slices.Repeat([][]podreport.Upstream{answers}, replicas)...)
		v, _ := held(w.pass().Conditions, mcpv1.ConditionUpstreamsReady)
		if got := strings.Contains(v.message, "StateNotShared"); got != want {
			t.Errorf("%d replicas: %s", replicas, v.message)
		}
	}
}

// TestOtherKindsBesideUpstreams: declared entries of each kind stand beside
// those of upstreams, which are no part of the catalog.
func TestOtherKindsBesideUpstreams(t *testing.T) {
	w := newWorld(t, twoUpstreams)
	text := "x"
	w.other(&mcpv1.MCPResource{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: mcpv1.MCPResourceSpec{URI: "docs://a", Text: &text}})
	w.fronting([]string{"o_x"}, []podreport.Upstream{up("orders", 1), up("vendor", 0)})
	status := w.pass()
	if got := condition(status.Conditions, mcpv1.ConditionSynced); got != "True Synced" {
		t.Errorf("Synced is %s", got)
	}
	if *status.ToolCount != 3 || *status.ResourceCount != 1 {
		t.Errorf("%d tools, %d resources", *status.ToolCount, *status.ResourceCount)
	}
	r := w.report()
	r.Resources.Entries = append(r.Resources.Entries, mcpprobe.Entry{Name: "docs://zzz"})
	if got := w.scope().listDiff(r); got != "" {
		t.Errorf("a resource of an upstream: %q", got)
	}
	r.Resources.Entries = r.Resources.Entries[1:]
	if got := w.scope().listDiff(r); got != "docs://a is not listed" {
		t.Errorf("without the declared resource: %q", got)
	}
	w.tools = nil
	w.pods = nil
	w.fronting(nil, []podreport.Upstream{down("orders"), down("vendor")})
	if got := condition(w.pass().Conditions, mcpv1.ConditionReady); got != "True Proved" {
		t.Errorf("with a resource left Ready is %s", got)
	}
}

// TestUpstreamOfATool: a declared tool that an upstream answers says so when
// the server has no such upstream, or none that can be used.
func TestUpstreamOfATool(t *testing.T) {
	w := newWorld(t, `{}`)
	w.tool("alpha", `upstream: {name: orders, tool: query}`)
	w.serving(1)
	for spec, want := range map[string]string{
		`{}`:         "False UpstreamNotFound",
		twoUpstreams: "True ResolvedRefs",
		`upstreams: [{name: orders, serverRef: {name: gone}}]`:                               "False ServerNotFound",
		`upstreams: [{name: vendor, url: "http://v.test"}]`:                                  "False UpstreamNotFound",
		`upstreams: [{name: orders, url: "http://o.test", when: "principal.kind == 'JWT'"}]`: "True ResolvedRefs",
	} {
		w.spec(spec)
		if got := condition(w.toolPass("alpha"), "ResolvedRefs"); got != want {
			t.Errorf("%s: alpha is %s, want %s", spec, got, want)
		}
		if got := condition(w.toolPass("alpha"), "Accepted"); got != "True Accepted" {
			t.Errorf("%s: alpha is %s", spec, got)
		}
		if got := condition(w.toolPass("beta"), "ResolvedRefs"); got != "True ResolvedRefs" {
			t.Errorf("%s: beta is %s", spec, got)
		}
	}
}
