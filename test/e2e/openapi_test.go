// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// kubernetesDocument is the API server's own document of one group.
const kubernetesDocument = "https://kubernetes.default.svc/openapi/v3/apis/apps/v1"

var _ = Describe("An upstream by OpenAPI", func() {
	It("makes tools of the API server's own document, and calls them", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "openapi")
		ns.Create(ctx,
			&corev1.ServiceAccount{ObjectMeta: harness.Meta("reader")},
			&rbacv1.Role{ObjectMeta: harness.Meta("reader"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}}}},
			&rbacv1.RoleBinding{
				ObjectMeta: harness.Meta("reader"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: ns.Name}},
			},
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: "reader", Annotations: map[string]string{corev1.ServiceAccountNameKey: "reader"}},
				Type:       corev1.SecretTypeServiceAccountToken,
			},
			harness.Server("apis", 1, func(s *v1alpha1.MCPServer) {
				s.Spec.Upstreams = []v1alpha1.Upstream{{
					Name: "apps", Prefix: "k_", Include: []string{"*Deployment", "*DeploymentForAllNamespaces"},
					OpenAPI: &v1alpha1.UpstreamOpenAPI{
						Document: v1alpha1.OpenAPIDocument{URL: kubernetesDocument},
						Headers:  []v1alpha1.Header{{Name: "Authorization", Prefix: "Bearer ", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "reader", Key: "token"}}},
						TLS:      &v1alpha1.ClientTLS{CA: &v1alpha1.CABundle{ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: "kube-root-ca.crt", Key: "ca.crt"}}},
					},
				}}
			}),
		)
		server := ns.AwaitServer(ctx, "apis", harness.RolloutTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		Expect(server.Status.Upstreams).To(HaveLen(1))
		Expect(server.Status.Upstreams[0].Tools).To(HaveValue(BeNumerically(">", 5)))

		peer := ns.ServicePeer(ctx, "apis")
		tools, err := peer.Tools(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(tools).To(HaveKey("k_createAppsV1NamespacedDeployment"))
		harness.Say("%d tools of Deployments", len(tools))

		By("a call that reads the server's own Deployment, in its output schema")
		answer, err := peer.Call(ctx, "k_readAppsV1NamespacedDeployment", map[string]any{"namespace": ns.Name, "name": "apis-mcp"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.IsError).To(BeFalse(), answer.Text())
		var deployment struct {
			Metadata struct{ Name, Namespace string }
		}
		Expect(json.Unmarshal(answer.Structured, &deployment)).To(Succeed())
		Expect(deployment.Metadata.Name).To(Equal("apis-mcp"))
		answer, err = peer.Call(ctx, "k_listAppsV1NamespacedDeployment", map[string]any{"namespace": ns.Name, "limit": 5})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.IsError).To(BeFalse(), answer.Text())

		By("what RBAC does not allow is an error of the tool")
		answer, err = peer.Call(ctx, "k_listAppsV1DeploymentForAllNamespaces", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.IsError).To(BeTrue())
		Expect(answer.Text()).To(HavePrefix("HTTP 403"))
	}, SpecTimeout(4*time.Minute))

	It("keeps the tools of a document that was broken, and says so", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "openapi-map")
		backend := ns.Backend(ctx, "backend")
		document := `openapi: 3.1.0
info: {title: Echo, version: "1"}
paths:
  /echo/: {get: {operationId: echo, parameters: [{name: q, in: query, schema: {type: string}}], responses: {"200": {description: It.}}}}
  /file: {post: {operationId: upload, requestBody: {required: true, content: {image/png: {}}}, responses: {"204": {description: Done.}}}}
`
		held := &corev1.ConfigMap{ObjectMeta: harness.Meta("api"), Data: map[string]string{"openapi.yaml": document}}
		ns.Create(ctx, held, harness.Server("apis", 1, func(s *v1alpha1.MCPServer) {
			s.Spec.Upstreams = []v1alpha1.Upstream{{Name: "echo", OpenAPI: &v1alpha1.UpstreamOpenAPI{
				Document: v1alpha1.OpenAPIDocument{ConfigMapKeyRef: &v1alpha1.ConfigMapKeyRef{Name: "api", Key: "openapi.yaml"}}, URL: backend.URL,
			}}}
		}, harness.Probed(5, 5, 3)))
		server := ns.AwaitServer(ctx, "apis", harness.RolloutTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		Expect(server.Status.Upstreams[0].SkippedOperations).To(ConsistOf(v1alpha1.SkippedOperation{Name: "upload", Reason: "UnsupportedMediaType"}))
		pods := harness.Identity(ns.Pods(ctx, "apis"))

		ns.Update(ctx, "api", held, func() { held.Data["openapi.yaml"] = "no document" })
		ns.AwaitServer(ctx, "apis", harness.RotationTimeout, harness.Ready,
			harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionFalse, v1alpha1.ReasonInvalidDocument))
		answer, err := ns.ServicePeer(ctx, "apis").Call(ctx, "echo", map[string]any{"q": "still"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.IsError).To(BeFalse(), answer.Text())
		Expect(answer.Text()).To(ContainSubstring("still"))

		By("a document that is one again")
		ns.Update(ctx, "api", held, func() {
			held.Data["openapi.yaml"] = strings.Replace(document, "operationId: echo", "operationId: say", 1)
		})
		ns.AwaitServer(ctx, "apis", harness.RotationTimeout, harness.Ready, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue))
		answer, err = ns.ServicePeer(ctx, "apis").Call(ctx, "say", map[string]any{"q": "again"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(ContainSubstring("again"))
		Expect(harness.Identity(ns.Pods(ctx, "apis"))).To(Equal(pods), "no rollout")
	}, SpecTimeout(4*time.Minute))
})
