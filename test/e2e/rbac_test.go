// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("The operator's rights", func() {
	It("are those of the ClusterRole, which holds no patch of pods and no list of secrets", func(ctx SpecContext) {
		var deployment appsv1.Deployment
		Expect(cluster.Client.Get(ctx, client.ObjectKey{Namespace: harness.OperatorNamespace, Name: harness.OperatorDeployment}, &deployment)).To(Succeed())
		Expect(deployment.Spec.Template.Spec.ServiceAccountName).To(Equal(harness.OperatorAccount), "the operator runs as this account")

		var role rbacv1.ClusterRole
		Expect(cluster.Client.Get(ctx, client.ObjectKey{Name: harness.OperatorRole}, &role)).To(Succeed())
		Expect(verbsOn(&role, "", "secrets")).To(ConsistOf("get"))
		Expect(verbsOn(&role, "", "pods")).To(ConsistOf("list", "watch"))
		Expect(verbsOn(&role, "", "pods/status")).To(ConsistOf("patch"))
		for _, rule := range role.Rules {
			Expect(rule.Verbs).NotTo(ContainElement("*"))
			Expect(rule.Resources).NotTo(ContainElement("*"))
			Expect(rule.APIGroups).NotTo(ContainElement("*"))
		}
	})

	It("are refused where they end, by the API server's own judgement", func(ctx SpecContext) {
		for _, c := range []struct {
			verb, group, resource, subresource string
			allowed                            bool
		}{
			{"get", "", "secrets", "", true},
			{"list", "", "secrets", "", false},
			{"watch", "", "secrets", "", false},
			{"create", "", "secrets", "", false},
			{"delete", "", "secrets", "", false},
			{"watch", "", "pods", "", true},
			{"patch", "", "pods", "status", true},
			{"patch", "", "pods", "", false},
			{"update", "", "pods", "", false},
			{"create", "", "pods", "", false},
			{"create", "", "pods", "exec", false},
			{"update", "", "pods", "ephemeralcontainers", false},
			{"patch", "mcp.espalier.dev", "mcpservers", "", false},
			{"patch", "mcp.espalier.dev", "mcpservers", "status", true},
			{"patch", "apps", "deployments", "", true},
			{"patch", "apps", "daemonsets", "", false},
			{"create", "rbac.authorization.k8s.io", "rolebindings", "", false},
			{"get", "", "nodes", "", false},
		} {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + harness.OperatorNamespace + ":" + harness.OperatorAccount,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + harness.OperatorNamespace, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: "default", Verb: c.verb, Group: c.group, Resource: c.resource, Subresource: c.subresource,
				},
			}}
			Expect(cluster.Client.Create(ctx, review)).To(Succeed())
			Expect(review.Status.Allowed).To(Equal(c.allowed), "%s %s/%s %s", c.verb, c.group, c.resource, c.subresource)
		}
	})
})

// verbsOn are the verbs that role allows on a resource.
func verbsOn(role *rbacv1.ClusterRole, group, resource string) []string {
	var verbs []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, group) && slices.Contains(rule.Resources, resource) {
			verbs = append(verbs, rule.Verbs...)
		}
	}
	slices.Sort(verbs)
	return slices.Compact(verbs)
}
