// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// role of config/rbac: its rules.
func rulesOf(t *testing.T, file string) []any {
	t.Helper()
	var role struct {
		Rules []any `json:"rules"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "config", "rbac", file)), &role); err != nil {
		t.Fatal(err)
	}
	if len(role.Rules) == 0 {
		t.Fatalf("%s has no rules", file)
	}
	return role.Rules
}

// split tells the rules that only a ClusterRole can hold from the others: of
// what is no resource, and to look for another operator in all namespaces.
func split(rules []any) (cluster, namespaced []any) {
	for _, rule := range rules {
		r := rule.(map[string]any)
		if resources, _ := r["resources"].([]any); r["nonResourceURLs"] != nil || slices.Contains(resources, any("leases")) {
			cluster = append(cluster, rule)
		} else {
			namespaced = append(namespaced, rule)
		}
	}
	return cluster, namespaced
}

// TestRBAC: in each mode the operator holds, where it works, exactly the rules
// of config/rbac, and nothing anywhere else.
func TestRBAC(t *testing.T) {
	all := rulesOf(t, "role.yaml")
	cluster, namespaced := split(all)
	if len(cluster) == 0 || len(namespaced) == 0 {
		t.Fatal("config/rbac/role.yaml has changed its nature: this test compares nothing")
	}
	own := rulesOf(t, "namespace_role.yaml")
	metrics := rulesOf(t, "metrics_auth_role.yaml")
	for name, c := range map[string]struct {
		values string
		want   map[string][]any
	}{
		"cluster": {`{}`, map[string][]any{
			"*": slices.Concat(all, metrics), "espalier-system": own,
		}},
		"namespaces": {`{watchNamespaces: [team-a, espalier-system]}`, map[string][]any{
			"*": slices.Concat(cluster, metrics), "team-a": namespaced, "espalier-system": slices.Concat(own, namespaced),
		}},
		"namespaces alone": {`{watchNamespaces: [team-a, team-b], rbac: {clusterScoped: false}, metrics: {secure: false}}`, map[string][]any{
			"team-a": namespaced, "team-b": namespaced, "espalier-system": own,
		}},
		"no metrics":      {`{metrics: {enabled: false}}`, map[string][]any{"*": all, "espalier-system": own}},
		"somebody else's": {`{rbac: {create: false}}`, map[string][]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, granted(t, render(t, c.values))); diff != "" {
				t.Errorf("rules by namespace, * is all (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRBACOfKustomize: config/namespaced limits the operator to a namespace,
// too.
func TestRBACOfKustomize(t *testing.T) {
	o := kustomize(t, "namespaced")
	want := map[string][]any{
		"*": rulesOf(t, "metrics_auth_role.yaml"), "team-a": rulesOf(t, "role.yaml"), "espalier-system": rulesOf(t, "namespace_role.yaml"),
	}
	if diff := cmp.Diff(want, granted(t, o)); diff != "" {
		t.Errorf("rules by namespace, * is all (-want +got):\n%s", diff)
	}
	if !slices.Contains(args(t, o), "--watch-namespace=team-a") {
		t.Errorf("flags are %q", args(t, o))
	}
}

// granted are the rules that bindings give to the operator's account, by
// namespace, in the order of the bindings' names.
func granted(t *testing.T, o objects) map[string][]any {
	t.Helper()
	account := field(t, o.get(t, manager), "spec", "template", "spec", "serviceAccountName")
	out := map[string][]any{}
	for _, id := range o.ids() {
		object := o[id]
		namespace := object.GetNamespace()
		switch object.GetKind() {
		case "ClusterRoleBinding":
			namespace = "*"
		case "RoleBinding":
		default:
			continue
		}
		want := []any{map[string]any{"kind": "ServiceAccount", "name": account, "namespace": release.Namespace}}
		if diff := cmp.Diff(want, object.Object["subjects"]); diff != "" {
			t.Errorf("subjects of %s:\n%s", id, diff)
		}
		out[namespace] = append(out[namespace], bound(t, o, object)...)
	}
	return out
}

// bound are the rules of the role that a binding names.
func bound(t *testing.T, o objects, binding *unstructured.Unstructured) []any {
	t.Helper()
	ref := binding.Object["roleRef"].(map[string]any)
	id := fmt.Sprintf("%s /%s", ref["kind"], ref["name"])
	if ref["kind"] == "Role" {
		id = fmt.Sprintf("Role %s/%s", binding.GetNamespace(), ref["name"])
	}
	return o.get(t, id).Object["rules"].([]any)
}

// TestNothingClusterWide: with rbac.clusterScoped off and the CRDs elsewhere,
// the release holds no object that belongs to no namespace.
func TestNothingClusterWide(t *testing.T) {
	o := render(t, `{crds: {enabled: false}, watchNamespaces: [team-a], rbac: {clusterScoped: false}, metrics: {secure: false}}`)
	for _, id := range o.ids() {
		if o[id].GetNamespace() == "" {
			t.Errorf("%s belongs to no namespace", id)
		}
	}
	if !slices.Contains(args(t, o), "--watch-namespace=team-a") || !slices.Contains(args(t, o), "--metrics-secure=false") {
		t.Errorf("flags are %q", args(t, o))
	}
}

// TestPeople: the roles for people are those of config/rbac, and are part of
// Kubernetes' own unless that is switched off.
func TestPeople(t *testing.T) {
	for values, aggregated := range map[string]map[string][]string{
		`{}`:                         {"editor": {"admin", "edit"}, "viewer": {"view"}},
		`{rbac: {aggregate: false}}`: {"editor": nil, "viewer": nil},
	} {
		o := render(t, values)
		for person, want := range aggregated {
			role := o.get(t, "ClusterRole /espalier-mcp-"+person)
			if diff := cmp.Diff(rulesOf(t, "mcp_"+person+"_role.yaml"), role.Object["rules"]); diff != "" {
				t.Errorf("%s:\n%s", person, diff)
			}
			var got []string
			for label := range role.GetLabels() {
				if to, ok := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-"); ok {
					got = append(got, to)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s is part of %q, want %q", values, person, got, want)
			}
		}
	}
}
