// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rbac tests config/rbac by asking a real API server what the operator
// may do.
package rbac

import (
	"fmt"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	apiserver.Main(m, func(s *apiserver.Server) { server = s })
}

const anywhere = "team-a"

// access is one question to the authorizer.
type access struct{ verb, group, resource, subresource, namespace, name string }

func (a access) String() string {
	return fmt.Sprintf("%s %s/%s %s in %s %s", a.verb, a.group, a.resource, a.subresource, a.namespace, a.name)
}

var allowed = []access{
	{"get", "", "secrets", "", anywhere, "any"},
	{"watch", "", "pods", "", anywhere, ""},
	{"patch", "", "pods", "status", anywhere, "any"},
	{"patch", "apps", "deployments", "", anywhere, "any"},
	{"delete", "policy", "poddisruptionbudgets", "", anywhere, "any"},
	{"delete", "networking.k8s.io", "networkpolicies", "", anywhere, "any"},
	{"create", "", "configmaps", "", anywhere, ""},
	{"create", "", "services", "", anywhere, ""},
	{"create", "events.k8s.io", "events", "", anywhere, ""},
	{"create", "", "events", "", apiserver.OperatorNamespace, ""},
	{"patch", "mcp.espalier.dev", "mcpservers", "status", anywhere, "any"},
	{"patch", "mcp.espalier.dev", "mcptools", "status", anywhere, "any"},
	{"watch", "mcp.espalier.dev", "mcpresources", "", anywhere, ""},
	{"patch", "mcp.espalier.dev", "mcpresources", "status", anywhere, "any"},
	{"watch", "mcp.espalier.dev", "mcpprompts", "", anywhere, ""},
	{"patch", "mcp.espalier.dev", "mcpprompts", "status", anywhere, "any"},
	{"create", "", "secrets", "", apiserver.OperatorNamespace, ""},
	{"get", "", "secrets", "", apiserver.OperatorNamespace, "espalier-keys"},
	{"create", "coordination.k8s.io", "leases", "", apiserver.OperatorNamespace, ""},
	{"update", "coordination.k8s.io", "leases", "", apiserver.OperatorNamespace, "espalier-manager"},
	{"list", "coordination.k8s.io", "leases", "", "", "espalier-manager"},
	{"create", "authentication.k8s.io", "tokenreviews", "", "", ""},
	{"create", "authorization.k8s.io", "subjectaccessreviews", "", "", ""},
}

var refused = []access{
	{"list", "", "secrets", "", anywhere, ""},
	{"watch", "", "secrets", "", anywhere, ""},
	{"create", "", "secrets", "", anywhere, ""},
	{"update", "", "secrets", "", anywhere, "espalier-keys"},
	{"list", "", "secrets", "", apiserver.OperatorNamespace, ""},
	{"watch", "", "secrets", "", apiserver.OperatorNamespace, ""},
	{"update", "", "secrets", "", apiserver.OperatorNamespace, "espalier-keys"},
	{"delete", "", "secrets", "", apiserver.OperatorNamespace, "espalier-keys"},
	{"get", "", "pods", "", anywhere, "any"},
	{"patch", "", "pods", "", anywhere, "any"},
	{"update", "", "pods", "", anywhere, "any"},
	{"create", "", "pods", "", anywhere, ""},
	{"delete", "", "pods", "", anywhere, "any"},
	{"create", "", "pods", "exec", anywhere, "any"},
	{"get", "", "pods", "log", anywhere, "any"},
	{"update", "", "pods", "ephemeralcontainers", anywhere, "any"},
	{"create", "", "events", "", anywhere, ""},
	{"patch", "events.k8s.io", "events", "", anywhere, "any"},
	{"update", "apps", "deployments", "", anywhere, "any"},
	{"update", "mcp.espalier.dev", "mcpservers", "status", anywhere, "any"},
	{"create", "", "serviceaccounts", "token", anywhere, "any"},
	{"update", "mcp.espalier.dev", "mcpservers", "", anywhere, "any"},
	{"patch", "mcp.espalier.dev", "mcptools", "", anywhere, "any"},
	{"patch", "mcp.espalier.dev", "mcpresources", "", anywhere, "any"},
	{"patch", "mcp.espalier.dev", "mcpprompts", "", anywhere, "any"},
	{"delete", "mcp.espalier.dev", "mcpservers", "", anywhere, "any"},
	{"get", "coordination.k8s.io", "leases", "", anywhere, "espalier-manager"},
	{"update", "coordination.k8s.io", "leases", "", anywhere, "espalier-manager"},
	{"list", "coordination.k8s.io", "leases", "", "", ""},
	{"list", "coordination.k8s.io", "leases", "", "", "other"},
	{"update", "coordination.k8s.io", "leases", "", apiserver.OperatorNamespace, "other"},
	{"create", "rbac.authorization.k8s.io", "rolebindings", "", anywhere, ""},
	{"impersonate", "", "users", "", "", "any"},
}

func TestOperator(t *testing.T) {
	operator, err := client.New(server.Operator(), client.Options{Scheme: apiserver.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, question := range allowed {
		if !may(t, operator, question) {
			t.Errorf("The operator must be able to %v", question)
		}
	}
	for _, question := range refused {
		if may(t, operator, question) {
			t.Errorf("The operator must not be able to %v", question)
		}
	}
}

func may(t *testing.T, c client.Client, a access) bool {
	t.Helper()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: a.verb, Group: a.group, Resource: a.resource, Subresource: a.subresource, Namespace: a.namespace, Name: a.name,
		},
	}}
	if err := c.Create(t.Context(), review); err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// TestPublishedKeys: the role itself lets the operator read the keys of service
// account tokens, also where the cluster does not let all of them do it.
func TestPublishedKeys(t *testing.T) {
	role := &rbacv1.ClusterRole{}
	if err := server.Client.Get(t.Context(), client.ObjectKey{Name: "manager"}, role); err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 && !slices.Equal(rule.Verbs, []string{"get"}) {
			t.Errorf("%v of %v", rule.Verbs, rule.NonResourceURLs)
		}
		paths = append(paths, rule.NonResourceURLs...)
	}
	if want := []string{"/.well-known/openid-configuration", "/openid/v1/jwks"}; !slices.Equal(paths, want) {
		t.Errorf("paths %v, want %v", paths, want)
	}
}

// TestNoWildcards: a wildcard would grant what nobody wrote down.
func TestNoWildcards(t *testing.T) {
	roles := &rbacv1.ClusterRoleList{}
	if err := server.Client.List(t.Context(), roles, client.MatchingLabels{"app.kubernetes.io/name": "espalier"}); err != nil {
		t.Fatal(err)
	}
	if len(roles.Items) == 0 {
		t.Fatal("no ClusterRole is installed")
	}
	for _, role := range roles.Items {
		for _, rule := range role.Rules {
			if slices.Contains(slices.Concat(rule.Verbs, rule.Resources, rule.APIGroups), "*") {
				t.Errorf("ClusterRole %s has a wildcard: %v", role.Name, rule)
			}
		}
	}
}
