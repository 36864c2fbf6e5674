// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/rivals"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// role is a ClusterRole that begins as the operator's own.
type role struct {
	*rbacv1.ClusterRole
	full []rbacv1.PolicyRule
}

// newRole makes a user with a role, and gives its access.
func newRole(t *testing.T) (*role, *rest.Config) {
	t.Helper()
	r := &role{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, operatorRules(t)}
	r.Rules = r.full
	must(t, api.Client.Create(t.Context(), r.ClusterRole))
	must(t, api.Client.Create(t.Context(), r.boundTo(r.Name)))
	access := rest.CopyConfig(api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: r.Name, Groups: []string{"system:authenticated"}}
	return r, access
}

// operatorRules are those of the operator's ClusterRole.
func operatorRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	var original rbacv1.ClusterRole
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Name: "manager"}, &original))
	return original.Rules
}

func (r *role) boundTo(user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
}

// take takes one right away; give gives all back.
func (r *role) take(t *testing.T, lacking apiserver.Right) {
	t.Helper()
	r.set(t, apiserver.Without(r.full, lacking))
}

func (r *role) give(t *testing.T) { t.Helper(); r.set(t, r.full) }

func (r *role) set(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	r.Rules = rules
	must(t, api.Client.Update(t.Context(), r.ClusterRole))
}

// without is one more try without a right: what is seen then, and that it heals.
type without func(t *testing.T, lacking apiserver.Right)

// tries are by right. There is one for each that the operator has.
func tries() map[apiserver.Right]without {
	out := map[apiserver.Right]without{
		{Verb: "patch", Resource: "pods/status"}:                                       withoutPokes,
		{Verb: "get", Resource: "secrets"}:                                             withoutSecrets,
		{Verb: "update", Resource: "mcpservers.mcp.espalier.dev/finalizers"}:           withoutOwning,
		{Verb: "create", Resource: "events.events.k8s.io"}:                             withoutEvents,
		{Verb: "get", Resource: "/.well-known/openid-configuration"}:                   withoutClusterKeys,
		{Verb: "get", Resource: "/openid/v1/jwks"}:                                     withoutClusterKeys,
		{Verb: "list", Resource: "pods"}:                                               withoutLists,
		{Verb: "watch", Resource: "pods"}:                                              withoutWatches,
		{Verb: "list", Resource: "leases.coordination.k8s.io", Name: rivals.LeaseName}: withoutRivals,
	}
	for _, child := range []string{"deployments.apps", "services", "configmaps", "poddisruptionbudgets.policy", "networkpolicies.networking.k8s.io"} {
		for _, verb := range []string{"get", "create", "patch"} {
			out[apiserver.Right{Verb: verb, Resource: child}] = withoutChild
		}
		out[apiserver.Right{Verb: "delete", Resource: child}] = withoutDeletion
		out[apiserver.Right{Verb: "list", Resource: child}] = withoutLists
		out[apiserver.Right{Verb: "watch", Resource: child}] = withoutWatches
	}
	for _, kind := range []string{"mcpservers", "mcptools", "mcpresources", "mcpprompts"} {
		out[apiserver.Right{Verb: "list", Resource: kind + ".mcp.espalier.dev"}] = withoutLists
		out[apiserver.Right{Verb: "watch", Resource: kind + ".mcp.espalier.dev"}] = withoutWatches
		out[apiserver.Right{Verb: "patch", Resource: kind + ".mcp.espalier.dev/status"}] = withoutStatus
	}
	return out
}

// TestEveryRight takes away each right that the operator has, by itself. What
// then cannot be done is told where DESIGN and docs/rbac.md say, and when the
// right is given back it is done, with no restart (A10).
func TestEveryRight(t *testing.T) {
	known := tries()
	for _, right := range apiserver.Rights(operatorRules(t)) {
		try := known[right]
		if try == nil {
			t.Errorf("nothing shows what happens when the operator may not %s", right)
			continue
		}
		delete(known, right)
		t.Run(right.String(), func(t *testing.T) { try(t, right) })
	}
	for right := range known {
		t.Errorf("the operator has no right to %s any more", right)
	}
}

// forbids waits until a condition of web says that it lacks a right and what
// to grant, and that an event warns of it.
func (w *world) forbids(condition string, lacking apiserver.Right) {
	w.Helper()
	w.becomes(map[string]string{condition: "False Forbidden"})
	m := meta.FindStatusCondition(w.web().Status.Conditions, condition).Message
	what := lacking.Verb + " " + lacking.Resource
	if !strings.Contains(m, "may not "+what+" (") || !strings.Contains(m, "Give its ClusterRole the verb "+lacking.Verb+" on "+lacking.Resource) {
		w.Errorf("%s says %q of the right to %s", condition, m, what)
	}
	w.told("Warning Forbidden MCPServer/web")
}

// withoutChild: a child cannot be looked at, created or written.
func withoutChild(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	twoTools(w)
	w.server(`{replicas: 3, networkPolicy: {ingress: {}}}`)
	w.becomes(map[string]string{"Ready": "False Forbidden", "Available": "False Forbidden", "Stalled": "-", "Reconciling": "-"})
	w.forbids("Available", lacking)
	w.eventually(soon, "an end of writing", func() string {
		written := len(w.writes.all())
		for range 3 {
			w.pass()
		}
		return strings.Join(w.writes.since(written, "status"), "; ")
	})
	r.give(t)
	w.becomesWithin(healed, map[string]string{"Available": "False Starting"})
	w.serve()
}

// withoutDeletion: a child that is not wanted any more cannot be deleted.
func withoutDeletion(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	twoTools(w)
	w.server(`{replicas: 3, networkPolicy: {ingress: {}}}`)
	w.serve()
	w.server(`{type: External, external: {url: "https://example.com/mcp"}}`)
	w.forbids("Available", lacking)
	r.give(t)
	w.eventually(healed, "children", func() string { return strings.Join(w.remaining(), ", ") })
	w.becomesWithin(healed, map[string]string{"Available": "True NotApplicable"})
}

// remaining are the children of web that are left.
func (w *world) remaining() []string {
	w.Helper()
	var left []string
	for key := range w.versions() {
		kind, name, _ := strings.Cut(key, " ")
		if !strings.HasPrefix(kind, "MCP") && kind != "Pod" && name != "kube-root-ca.crt" {
			left = append(left, key)
		}
	}
	return left
}

// withoutPokes: pods cannot be poked. That is told; they load the catalog by
// themselves sooner or later.
func withoutPokes(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	w := newWorldAs(t, access)
	twoTools(w)
	w.serve()
	w.rest()
	r.take(t, lacking)
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.becomes(map[string]string{"Available": "False Forbidden", "Synced": "False CatalogPending", "Ready": "True Proved"})
	w.forbids("Available", lacking)
	r.give(t)
	w.becomesWithin(healed, map[string]string{"Available": "True Available"})
	w.eventually(soon, "pokes", func() string {
		for pod, value := range w.pokes() {
			if value == "" {
				return pod + " was not poked"
			}
		}
		return ""
	})
}

// withoutSecrets: nothing is known of Secrets. That is told; pods that run are
// left alone.
func withoutSecrets(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	w.secret("s", "k")
	w.server(`{workload: {env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}]}}`)
	w.tool("one", withSecret("s", "k"))
	w.becomes(map[string]string{"ResolvedRefs": "False Forbidden", "Ready": "False Starting"})
	w.forbids("ResolvedRefs", lacking)
	w.serve()
	r.give(t)
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.rest()
	w.serve()
	w.rest()
	generation := w.generation()
	r.take(t, lacking)
	w.becomes(map[string]string{"ResolvedRefs": "False Forbidden", "Ready": "True Proved"})
	w.rest()
	if w.generation() != generation {
		t.Error("a permission that went away rolled the pods")
	}
}

// TestForbiddenConfigMap: a ConfigMap that a spec names is read by the same
// right as children are looked at, and told as a reference.
func TestForbiddenConfigMap(t *testing.T) {
	lacking := apiserver.Right{Verb: "get", Resource: "configmaps"}
	r, access := newRole(t)
	w := newWorldAs(t, access)
	w.server(`{}`)
	w.serve()
	r.take(t, lacking)
	w.tool("one", `http: {method: GET, url: "http://api", headers: [{name: A, configMapKeyRef: {name: c, key: k}}]}`)
	w.forbids("ResolvedRefs", lacking)
	r.give(t)
	w.becomes(map[string]string{"ResolvedRefs": "False ConfigMapNotFound"})
}

// withoutStatus: the log and a metric are the only places to tell it, and
// nothing spins.
func withoutStatus(t *testing.T, lacking apiserver.Right) {
	r, access := newRole(t)
	r.take(t, lacking)
	w := newWorldAs(t, access)
	twoTools(w)
	w.apply(`{kind: MCPResource, metadata: {name: r}, spec: {serverRefs: [{name: web}], uri: "a:b", text: "t"}}
---
{kind: MCPPrompt, metadata: {name: p}, spec: {serverRefs: [{name: web}], messages: [{role: User, content: {type: Text, text: "t"}}]}}`)
	told := "may not patch " + lacking.Resource
	w.eventually(soon, "the log", func() string {
		if strings.Contains(w.log.String(), told) {
			return ""
		}
		return "it does not say: " + told
	})
	w.refusedOf(lacking)
	w.rollOut()
	w.targeted(3)
	if n := strings.Count(w.log.String(), told); n > 60 {
		t.Errorf("it was tried %d times", n)
	}
	r.give(t)
	w.prove(w.report())
	w.eventually(healed, "Served", func() string {
		var wrong []string
		for name, obj := range map[string]mcpv1.Registration{"alpha": &mcpv1.MCPTool{}, "r": &mcpv1.MCPResource{}, "p": &mcpv1.MCPPrompt{}} {
			if m := differs(get(w, name, obj).GetRegistrationStatus().Conditions, isServed, 0, 0); m != "" {
				wrong = append(wrong, name+": "+m)
			}
		}
		return strings.Join(wrong, "; ")
	})
	w.becomesWithin(healed, map[string]string{"Ready": "True Proved"})
}

// withoutRivals: it is not known whether another operator works on the same
// servers. This one leads all the same, and tells of the right.
func withoutRivals(t *testing.T, lacking apiserver.Right) {
	h := newHome(t) // Its user has no ClusterRole at all.
	lock, err := rivals.New(h.access, h.namespace, []string{h.namespace})
	must(t, err)
	now := metav1.Now()
	must(t, lock.Create(h.ctx, resourcelock.LeaderElectionRecord{HolderIdentity: lock.Identity(), LeaseDurationSeconds: 15, AcquireTime: now, RenewTime: now}))
	must(t, lock.Check())
	h.refusedOf(lacking)
}
