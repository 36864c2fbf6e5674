// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
)

// on gives how a tool fares with a server.
func on(name string, accepted, served verdict) onServer {
	return onServer{name: name, exists: true, verdict: &registrationVerdict{accepted: accepted, refs: yes("ResolvedRefs", "m"), served: &served}}
}

func TestToolStatus(t *testing.T) {
	good := func(name string) onServer { return on(name, yes("Accepted", "m"), yes("Served", "m")) }
	bad := func(name, reason string) onServer { return on(name, no(reason, "m"), no("NotAccepted", "m")) }
	tests := map[string]struct {
		servers []onServer
		// Conditions of the tool: Accepted, ResolvedRefs, Served, Stalled.
		want    [4]string
		count   int32
		message string // a part of Accepted's message
		partial bool
	}{
		"one server":         {[]onServer{good("a")}, [4]string{"True Accepted", "True ResolvedRefs", "True Served", "-"}, 1, "m", false},
		"several":            {[]onServer{good("b"), good("a")}, [4]string{"True Accepted", "True ResolvedRefs", "True Served", "-"}, 2, "m", false},
		"no server there":    {[]onServer{{name: "a"}}, [4]string{"False ServerNotFound", "Unknown Pending", "False ServerNotFound", "-"}, 0, "MCPServer a does not exist", false},
		"none selected":      {nil, [4]string{"False NoServers", "Unknown Pending", "False NoServers", "-"}, 0, "serverSelector", false},
		"one of two there":   {[]onServer{{name: "b"}, good("a")}, [4]string{"False ServerNotFound", "Unknown Pending", "False PartlyServed", "-"}, 1, "b: MCPServer b", false},
		"lost a conflict":    {[]onServer{bad("a", "Conflict")}, [4]string{"False Conflict", "True ResolvedRefs", "False NotAccepted", "True Conflict"}, 0, "m", false},
		"broken":             {[]onServer{bad("a", "InvalidExpression"), bad("b", "InvalidExpression")}, [4]string{"False InvalidExpression", "True ResolvedRefs", "False NotAccepted", "True InvalidExpression"}, 0, "a: m", false},
		"filtered":           {[]onServer{bad("a", "Filtered")}, [4]string{"False Filtered", "True ResolvedRefs", "False NotAccepted", "-"}, 0, "m", false},
		"switched off":       {[]onServer{bad("a", "Suspended")}, [4]string{"False Suspended", "True ResolvedRefs", "False NotAccepted", "-"}, 0, "m", false},
		"no executor":        {[]onServer{on("a", yes("NoExecutor", "m"), yes("Served", "m"))}, [4]string{"True NoExecutor", "True ResolvedRefs", "True Served", "-"}, 1, "m", false},
		"unknown on one":     {[]onServer{good("a"), on("b", yes("Accepted", "m"), unknown("Pending", "m"))}, [4]string{"True Accepted", "True ResolvedRefs", "Unknown Pending", "-"}, 2, "m", false},
		"one has not spoken": {[]onServer{good("a"), {name: "b", exists: true}}, [4]string{}, 0, "", true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tool := &mcpv1.MCPTool{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 4}}
			status, complete := registrationStatus(tool, test.servers, metav1.Now())
			if complete == test.partial {
				t.Fatalf("complete: %v", complete)
			}
			if test.partial {
				return
			}
			checkConditions(t, status.Conditions, 4)
			for i, c := range registrationConditionOrder {
				if got := condition(status.Conditions, c); got != test.want[i] {
					t.Errorf("%s is %s, want %s", c, got, test.want[i])
				}
			}
			if status.ObservedGeneration != 4 || *status.ServerCount != test.count || len(status.Servers) != len(test.servers) {
				t.Errorf("generation %d, %d servers accept, %d named", status.ObservedGeneration, *status.ServerCount, len(status.Servers))
			}
			if m := conditionVerdict(status.Conditions, "Accepted").message; !strings.Contains(m, test.message) {
				t.Errorf("Accepted says %q, want %q in it", m, test.message)
			}
			tool.Status.RegistrationStatus = status
			if again, _ := registrationStatus(tool, test.servers, metav1.Now()); !equal(again, status) {
				t.Errorf("a second pass differs: %v", again)
			}
		})
	}
}

// TestToolOnManyServers: so many are named, the rest are counted.
func TestToolOnManyServers(t *testing.T) {
	var servers []onServer
	for i := range mcpv1.MaxStatusServers + 3 {
		servers = append(servers, on(fmt.Sprintf("s%03d", i), yes("Accepted", "m"), yes("Served", "m")))
	}
	status, _ := registrationStatus(&mcpv1.MCPTool{}, servers, metav1.Now())
	if len(status.Servers) != mcpv1.MaxStatusServers || ptr.Deref(status.ServersOmitted, 0) != 3 || *status.ServerCount != mcpv1.MaxStatusServers+3 {
		t.Errorf("%d named, %v omitted, %d counted", len(status.Servers), status.ServersOmitted, *status.ServerCount)
	}
}

// TestRelearned: what was said of a server that was left is gone.
func TestRelearned(t *testing.T) {
	tool := &mcpv1.MCPTool{}
	tool.Status.RegistrationStatus, _ = registrationStatus(tool, []onServer{on("a", yes("Accepted", "m"), yes("Served", "m")), {name: "b"}}, metav1.Now())
	status, _ := registrationStatus(tool, []onServer{on("a", yes("Accepted", "m"), yes("Served", "m"))}, metav1.Now())
	if len(status.Servers) != 1 || condition(status.Conditions, "Accepted") != "True Accepted" || condition(status.Conditions, "Served") != "True Served" {
		t.Errorf("%+v", status)
	}
}

// TestVerdictsWake: only what something changed for is woken, by the
// controller of its kind.
func TestVerdictsWake(t *testing.T) {
	v := newVerdicts()
	server := keyOf("ns", "web")
	woken := func() (names []string) {
		for kind, wake := range v.wake {
			for len(wake) > 0 {
				e := <-wake
				names = append(names, string(kind)+" "+e.Object.Namespace+"/"+e.Object.Name)
			}
		}
		slices.Sort(names)
		return names
	}
	s := yes("Served", "m")
	a, b := catalog.ID{Kind: catalog.KindTool, Name: "a"}, catalog.ID{Kind: catalog.KindPrompt, Name: "a"}
	verdicts := func(generation int64) map[catalog.ID]registrationVerdict {
		return map[catalog.ID]registrationVerdict{a: {generation: generation, served: &s}, b: {served: &s}}
	}
	steps := []struct {
		name    string
		publish map[catalog.ID]registrationVerdict
		want    string
	}{
		{"first", verdicts(1), "[MCPPrompt ns/a MCPTool ns/a]"},
		{"the same again", verdicts(1), "[]"},
		{"another generation", verdicts(2), "[MCPTool ns/a]"},
		{"one left", map[catalog.ID]registrationVerdict{a: verdicts(2)[a]}, "[MCPPrompt ns/a]"},
		{"server gone", nil, "[MCPTool ns/a]"},
		{"gone twice", nil, "[]"},
	}
	for _, step := range steps {
		v.publish(server, step.publish)
		if got := fmt.Sprint(woken()); got != step.want {
			t.Errorf("%s: woken %v, want %s", step.name, got, step.want)
		}
	}
	v.publish(server, verdicts(1))
	if len(v.of("ns", a)) != 1 || len(v.of("other", a)) != 0 || len(v.of("ns", catalog.ID{Kind: catalog.KindResource, Name: "a"})) != 0 {
		t.Error("verdicts are told of the wrong registrations")
	}
}
