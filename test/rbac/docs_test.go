// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// TestDocs: the tables of docs/rbac.md are the roles of config/rbac, right by
// right, each with a reason.
func TestDocs(t *testing.T) {
	var manager, reviews rbacv1.ClusterRole
	var home rbacv1.Role
	for key, role := range map[client.ObjectKey]client.Object{
		{Name: "manager"}:      &manager,
		{Name: "metrics-auth"}: &reviews,
		{Name: "manager", Namespace: apiserver.OperatorNamespace}: &home,
	} {
		if err := server.Client.Get(t.Context(), key, role); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(apiserver.Path("docs", "rbac.md"))
	if err != nil {
		t.Fatal(err)
	}
	for title, rules := range map[string][]rbacv1.PolicyRule{
		"ClusterRole manager": manager.Rules, "Role manager, in the operator's own namespace": home.Rules, "ClusterRole metrics-auth": reviews.Rules,
	} {
		if diff := cmp.Diff(apiserver.Rights(rules), documented(t, string(text), title)); diff != "" {
			t.Errorf("docs/rbac.md, %s (-config/rbac +docs):\n%s", title, diff)
		}
	}
}

// documented are the rights of the table below a title, in order.
func documented(t *testing.T, text, title string) []apiserver.Right {
	t.Helper()
	_, section, ok := strings.Cut(text, "\n## "+title+"\n")
	if !ok {
		t.Fatalf("docs/rbac.md has no section %q", title)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var out []apiserver.Right
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "resource" {
			continue
		}
		if strings.TrimSpace(cells[2]) == "" {
			t.Errorf("docs/rbac.md gives no reason for %s", line)
		}
		for _, resource := range strings.Split(cells[0], ",") {
			resource, name, _ := strings.Cut(strings.TrimSpace(resource), " ")
			out = append(out, apiserver.Right{Verb: strings.TrimSpace(cells[1]), Resource: resource, Name: name})
		}
	}
	slices.SortFunc(out, func(a, b apiserver.Right) int { return strings.Compare(a.String(), b.String()) })
	return out
}
