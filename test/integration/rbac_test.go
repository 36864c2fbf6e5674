// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// without gives the rules of the operator but for verbs on resource.
func without(rules []rbacv1.PolicyRule, resource string, verbs ...string) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, rule := range rules {
		for _, r := range rule.Resources {
			one := rule.DeepCopy()
			one.Resources = []string{r}
			if r == resource {
				one.Verbs = slices.DeleteFunc(one.Verbs, func(v string) bool { return slices.Contains(verbs, v) })
			}
			if len(one.Verbs) > 0 {
				out = append(out, *one)
			}
		}
	}
	return out
}

// role is a ClusterRole that begins as the operator's own.
type role struct {
	*rbacv1.ClusterRole
	full []rbacv1.PolicyRule
}

// newRole makes a user with a role, and gives its access.
func newRole(t *testing.T) (*role, *rest.Config) {
	t.Helper()
	var original rbacv1.ClusterRole
	must(t, api.Client.Get(t.Context(), client.ObjectKey{Name: "manager"}, &original))
	r := &role{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Rules: original.Rules}, original.Rules}
	must(t, api.Client.Create(t.Context(), r.ClusterRole))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: r.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: r.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: r.Name}},
	}
	must(t, api.Client.Create(t.Context(), binding))
	access := rest.CopyConfig(api.Config)
	access.Impersonate = rest.ImpersonationConfig{UserName: r.Name, Groups: []string{"system:authenticated"}}
	return r, access
}

// set gives the role these rules.
func (r *role) set(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	r.Rules = rules
	must(t, api.Client.Update(t.Context(), r.ClusterRole))
}

// TestForbiddenChild: a permission on a kind of child is missing (A10). A
// condition names verb and resource, an event warns, and it heals by itself.
func TestForbiddenChild(t *testing.T) {
	t.Parallel()
	for resource, verb := range map[string]string{
		"deployments": "create", "services": "patch", "configmaps": "create", "poddisruptionbudgets": "patch", "networkpolicies": "create",
	} {
		t.Run(verb+" "+resource, func(t *testing.T) {
			r, access := newRole(t)
			r.set(t, without(r.full, resource, verb))
			w := newWorldAs(t, access)
			twoTools(w)
			w.server(`{replicas: 3, networkPolicy: {ingress: {}}}`)
			w.becomes(map[string]string{"Ready": "False Forbidden", "Available": "False Forbidden", "Stalled": "-", "Reconciling": "-"})
			if m := meta.FindStatusCondition(w.web().Status.Conditions, "Available").Message; !strings.Contains(m, "may not "+verb+" "+resource) {
				t.Errorf("it is told as %q", m)
			}
			w.told("Warning Forbidden MCPServer/web")
			w.eventually(soon, "an end of writing", func() string {
				written := len(w.writes.all())
				for range 3 {
					w.pass()
				}
				return strings.Join(w.writes.since(written, "status"), "; ")
			})
			r.set(t, r.full)
			w.becomesWithin(healed, map[string]string{"Available": "False Starting"})
			w.serve()
		})
	}
}

// TestForbiddenPoke: pods cannot be poked. That is told; they load the catalog
// by themselves sooner or later.
func TestForbiddenPoke(t *testing.T) {
	r, access := newRole(t)
	w := newWorldAs(t, access)
	twoTools(w)
	w.serve()
	w.rest()
	r.set(t, without(r.full, "pods/status", "patch"))
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.becomes(map[string]string{"Available": "False Forbidden", "Synced": "False CatalogPending", "Ready": "True Proved"})
	if m := meta.FindStatusCondition(w.web().Status.Conditions, "Available").Message; !strings.Contains(m, "may not patch pods/status") {
		t.Errorf("it is told as %q", m)
	}
	w.told("Warning Forbidden MCPServer/web")
	r.set(t, r.full)
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

// TestForbiddenSecrets: without get on secrets nothing is known of them. That
// is told; pods that run are left alone.
func TestForbiddenSecrets(t *testing.T) {
	r, access := newRole(t)
	r.set(t, without(r.full, "secrets", "get"))
	w := newWorldAs(t, access)
	w.secret("s", "k")
	w.server(`{workload: {env: [{name: T, valueFrom: {secretKeyRef: {name: s, key: k}}}]}}`)
	w.tool("one", withSecret("s", "k"))
	w.becomes(map[string]string{"ResolvedRefs": "False Forbidden", "Ready": "False Starting"})
	if m := meta.FindStatusCondition(w.web().Status.Conditions, "ResolvedRefs").Message; !strings.Contains(m, "may not get secrets") {
		t.Errorf("it is told as %q", m)
	}
	w.told("Warning Forbidden MCPServer/web")
	w.serve()
	r.set(t, r.full)
	w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs"})
	w.rest()
	w.serve()
	w.rest()
	generation := w.generation()
	r.set(t, without(r.full, "secrets", "get"))
	w.becomes(map[string]string{"ResolvedRefs": "False Forbidden", "Ready": "True Proved"})
	w.rest()
	if w.generation() != generation {
		t.Error("a permission that went away rolled the pods")
	}
}

// TestForbiddenStatus: the log is the only place to tell it, and nothing spins.
func TestForbiddenStatus(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{"mcpservers/status", "mcptools/status"} {
		t.Run(resource, func(t *testing.T) {
			r, access := newRole(t)
			r.set(t, without(r.full, resource, "patch", "update"))
			w := newWorldAs(t, access)
			twoTools(w)
			w.eventually(soon, "the log", func() string {
				if strings.Contains(w.log.String(), "may not patch "+resource) {
					return ""
				}
				return "nothing is told of " + resource
			})
			w.rollOut()
			w.targeted(3)
			if n := strings.Count(w.log.String(), "may not patch "+resource); n > 60 {
				t.Errorf("it was tried %d times", n)
			}
			r.set(t, r.full)
			w.prove(w.report())
			w.eventually(healed, "Served", func() string {
				return differs(get(w, "alpha", &mcpv1.MCPTool{}).Status.Conditions, isServed, 0, 0)
			})
			w.becomesWithin(healed, map[string]string{"Ready": "True Proved"})
		})
	}
}
