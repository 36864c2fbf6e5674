// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reached are the namespaces that the policy lets the pods of web reach.
func reached(w *world) string {
	w.Helper()
	policy := &networkingv1.NetworkPolicy{}
	if !w.exists("web-mcp", policy) {
		return "no policy"
	}
	var out []string
	for _, rule := range policy.Spec.Egress {
		for _, peer := range rule.To {
			if s := peer.NamespaceSelector; s != nil && s.MatchLabels[corev1.LabelMetadataName] != "openshift-dns" {
				out = append(out, s.MatchLabels[corev1.LabelMetadataName])
			}
		}
	}
	return strings.Join(out, " ")
}

// TestNetworkPolicy: it is made when it is asked for, follows what the tools
// name without a rollout, is kept as it is wanted, and goes.
func TestNetworkPolicy(t *testing.T) {
	w := newWorld(t)
	const spec = `{replicas: 2, networkPolicy: {ingress: {sameNamespace: false, namespaces: [{matchLabels: {team: agents}}]}, egress: {}}}`
	w.server(`{replicas: 2}`)
	w.tool("alpha", `http: {method: GET, url: "http://backend.shop.svc/a"}`)
	w.serve()
	w.rest()
	if w.exists("web-mcp", &networkingv1.NetworkPolicy{}) {
		t.Fatal("there is a policy that nobody asked for")
	}
	template := get(w, "web-mcp", &appsv1.Deployment{}).Generation
	await := func(what, want string) {
		t.Helper()
		w.eventually(soon, what, func() string {
			if got := reached(w); got != want {
				return "it reaches " + got + ", want " + want
			}
			return ""
		})
	}
	w.server(spec)
	await("the policy", "shop")
	policy := get(w, "web-mcp", &networkingv1.NetworkPolicy{})
	if owner := metav1.GetControllerOf(policy); owner == nil || owner.UID != w.web().UID {
		t.Errorf("it has owners %v", policy.OwnerReferences)
	}
	w.tool("beta", `http: {method: GET, url: "http://backend.depot.svc/b"}`)
	await("what a new tool names", "depot shop")
	w.serve()
	w.rest()
	versions := w.versions()
	for range 3 {
		w.pass()
	}
	if diff := cmp.Diff(versions, w.versions()); diff != "" {
		t.Errorf("something was written at rest:\n%s", diff)
	}

	must(t, api.Client.Delete(w.ctx, get(w, "web-mcp", &networkingv1.NetworkPolicy{})))
	await("it again after it was deleted", "depot shop")
	w.rest()
	policy = get(w, "web-mcp", &networkingv1.NetworkPolicy{})
	wanted := policy.Spec.DeepCopy()
	policy.Spec.Ingress = append(policy.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{}) // For everybody.
	must(t, api.Client.Update(w.ctx, policy, client.FieldOwner("somebody")))
	w.eventually(soon, "the rules again after somebody added one", func() string {
		return cmp.Diff(*wanted, get(w, "web-mcp", &networkingv1.NetworkPolicy{}).Spec)
	})

	w.server(`{replicas: 2}`)
	w.eventually(soon, "no policy", func() string {
		if w.exists("web-mcp", &networkingv1.NetworkPolicy{}) {
			return "it is still there"
		}
		return ""
	})
	if now := get(w, "web-mcp", &appsv1.Deployment{}).Generation; now != template {
		t.Errorf("the Deployment went from generation %d to %d", template, now)
	}
}

// TestForeignNetworkPolicy: somebody else's policy of the name is left alone,
// and no pods are made that ours would not guard.
func TestForeignNetworkPolicy(t *testing.T) {
	w := newWorld(t)
	foreign := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "web-mcp", Namespace: w.namespace}}
	must(t, api.Client.Create(w.ctx, foreign))
	w.server(`{networkPolicy: {ingress: {}}}`)
	w.becomes(map[string]string{"Ready": "False ForeignObject", "Available": "False ForeignObject", "Stalled": "True ForeignObject"})
	now := get(w, "web-mcp", &networkingv1.NetworkPolicy{})
	if now.ResourceVersion != foreign.ResourceVersion || slices.Contains(now.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		t.Errorf("it was changed: %+v", now)
	}
	w.rest()
	if w.exists("web-mcp", &appsv1.Deployment{}) {
		t.Error("there are pods that nothing guards")
	}
	must(t, api.Client.Delete(w.ctx, foreign))
	w.becomesWithin(healed, map[string]string{"Available": "False Starting", "Stalled": "-"})
	w.serve()
	if reached(w) == "no policy" {
		t.Error("ours was not made")
	}
}

// TestInvalidNetworkPolicy: labels that the CRD does not judge are refused by the
// API server. That is told with the field; pods that run go on.
func TestInvalidNetworkPolicy(t *testing.T) {
	w := newWorld(t)
	w.server(`{}`)
	w.serve()
	w.server(`{networkPolicy: {ingress: {namespaces: [{matchLabels: {"no label": x}}]}}}`)
	w.becomes(map[string]string{"Available": "False ApplyFailed", "Stalled": "True ApplyFailed"})
	if m := meta.FindStatusCondition(w.web().Status.Conditions, "Available").Message; !strings.Contains(m, "Check spec.networkPolicy") || !strings.Contains(m, "no label") {
		t.Errorf("it is told as %q", m)
	}
	if !w.exists("web-mcp", &appsv1.Deployment{}) {
		t.Error("pods that ran are gone")
	}
	w.server(`{networkPolicy: {ingress: {namespaces: [{matchLabels: {a: x}}]}}}`)
	w.becomes(map[string]string{"Ready": "True Proved", "Stalled": "-"})
}
