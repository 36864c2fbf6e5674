// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// helmWait bounds what a helm command waits for.
	helmWait = "--timeout=3m"
	// upgradedServers are called while the operator is upgraded; a soak has
	// more of them.
	upgradedServers = 4
)

var _ = Describe("The chart", Label(slow, disruptive), Serial, func() {
	It("installs, upgrades without a failed call, limits the operator to namespaces, and is uninstalled in any order", func(ctx SpecContext) {
		found := cluster.Installed(ctx)
		found.Replace(ctx)
		createRestricted(ctx, harness.OperatorNamespace)
		DeferCleanup(func(ctx context.Context) { uninstallChart(ctx) })

		By("helm install of the commit before: two pods, one of which leads")
		installBefore(ctx, found)
		Expect(cluster.OperatorPods(ctx)).To(HaveLen(2))
		Expect(cluster.Client.Get(ctx, operatorKey(), &policyv1.PodDisruptionBudget{})).To(Succeed())
		ns := cluster.Namespace(ctx, "helm")
		collector := ns.Collector(ctx)
		ns.Create(ctx, harness.Server("first", 1, harness.Traced(collector)), harness.Tool("ping", "first", harness.Says(`"pong"`)))
		load := fleetUnderLoad(ctx, ns, upgradedServers)
		ns.AwaitServer(ctx, "first", harness.ReadyTimeout, harness.Ready)

		By("helm upgrade to this commit: its CRDs, its RBAC, its operator")
		upgradeFromBefore(ctx, found, ns, load)
		Expect(cluster.OperatorPods(ctx)).To(HaveLen(2))
		expectEdit(ctx, ns, "edited by this commit")
		all, pods := podsOfFleet(ctx, ns), harness.Identity(ns.Pods(ctx, "first"))

		By("helm upgrade with changed values: the operator changes, no server does")
		cluster.Helm(ctx, append([]string{"upgrade", "espalier", harness.Chart, "--reset-then-reuse-values", "--wait", helmWait,
			"--set=manager.replicas=1", "--set=manager.logging.level=debug"}, extraEnv(collector.Environment())...)...)
		cluster.AwaitOperator(ctx)
		Expect(cluster.OperatorPods(ctx)).To(HaveLen(1))
		Expect(operatorArgs(ctx)).To(ContainElement("--zap-log-level=debug"))
		expectEdit(ctx, ns, "edited after an upgrade")
		calls := load.Stop()
		Expect(load.Failures()).To(BeEmpty())
		harness.Say("%d calls while the operator was upgraded twice, none failed", calls)
		Expect(calls).To(BeNumerically(">", 10*upgradedServers))
		Expect(podsOfFleet(ctx, ns)).To(Equal(all), "pods of servers")
		expectSpansOfOperator(ctx, collector, ns, "first")

		By("helm upgrade to one namespace: the operator works there by a Role, and nowhere else")
		cluster.Helm(ctx, "upgrade", "espalier", harness.Chart, "--reset-then-reuse-values", "--wait", helmWait,
			"--set=watchNamespaces={"+ns.Name+"}", "--set=rbac.clusterScoped=false", "--set=metrics.secure=false")
		cluster.AwaitOperator(ctx)
		expectNoClusterRoles(ctx)
		other := cluster.Namespace(ctx, "helm-other")
		Expect(operatorMay(ctx, ns.Name)).To(BeTrue(), "get Secrets in the namespace that is watched")
		Expect(operatorMay(ctx, other.Name)).To(BeFalse(), "get Secrets elsewhere")
		other.Create(ctx, harness.Server("elsewhere", 1))
		ns.Create(ctx, harness.Server("second", 1))
		ns.AwaitServer(ctx, "second", harness.ReadyTimeout, harness.Ready)
		expectEdit(ctx, ns, "edited under Roles")
		elsewhere := &v1alpha1.MCPServer{}
		other.Get(ctx, "elsewhere", elsewhere)
		Expect(elsewhere.Status.Conditions).To(BeEmpty(), "a server of a namespace that is not watched, older than one that is Ready")

		By("helm uninstall: servers and CRDs stay, calls are answered, and what is deleted goes")
		uninstallChart(ctx)
		Expect(crds(ctx)).To(HaveLen(4))
		Expect(cluster.Client.Get(ctx, operatorKey(), &appsv1.Deployment{})).To(Satisfy(apierrors.IsNotFound))
		expectAnswer(ctx, ns, "first", "ping", "edited under Roles")
		second := &v1alpha1.MCPServer{ObjectMeta: harness.Meta("second")}
		ns.Delete(ctx, second)
		ns.Gone(ctx, second)
		Eventually(ctx, func() []string { return ns.Owned(ctx, "second") }).WithTimeout(harness.DeleteTimeout).Should(BeEmpty())

		By("helm install over the CRDs that were kept: the server goes on in the same pod")
		cluster.Helm(ctx, append([]string{"install", "espalier", harness.Chart, "--wait", helmWait,
			"--set=crds.keep=false", "--set=manager.replicas=1"}, found.ChartValues()...)...)
		cluster.AwaitOperator(ctx)
		ns.AwaitServer(ctx, "first", harness.ReadyTimeout, harness.Ready)
		other.AwaitServer(ctx, "elsewhere", harness.ReadyTimeout, harness.Ready)
		expectEdit(ctx, ns, "edited again")
		Expect(harness.Identity(ns.Pods(ctx, "first"))).To(Equal(pods), "pods of the server")

		By("helm uninstall without crds.keep: everything goes, with servers still there")
		uninstallChart(ctx)
		Eventually(ctx, func() []string { return crds(ctx) }).WithTimeout(harness.DeleteTimeout).Should(BeEmpty())
		Eventually(ctx, func() []string { return append(ns.Owned(ctx, "first"), other.Owned(ctx, "elsewhere")...) }).
			WithTimeout(harness.DeleteTimeout).Should(BeEmpty(), "children of servers whose CRD is gone")
	}, SpecTimeout(10*time.Minute))
})

func operatorKey() client.ObjectKey {
	return client.ObjectKey{Namespace: harness.OperatorNamespace, Name: harness.OperatorDeployment}
}

// createRestricted creates a namespace that enforces Pod Security restricted.
func createRestricted(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	Expect(cluster.Client.Create(ctx, namespace)).To(Succeed())
}

func uninstallChart(ctx context.Context) {
	GinkgoHelper()
	cluster.Helm(ctx, "uninstall", "espalier", "--ignore-not-found", "--wait", helmWait)
}

// extraEnv are the flags that give the operator more environment.
func extraEnv(variables []corev1.EnvVar) []string {
	var out []string
	for i, v := range variables {
		out = append(out, fmt.Sprintf("--set-string=manager.extraEnv[%d].name=%s,manager.extraEnv[%d].value=%s", i, v.Name, i, v.Value))
	}
	return out
}

func operatorArgs(ctx context.Context) []string {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	Expect(cluster.Client.Get(ctx, operatorKey(), d)).To(Succeed())
	return d.Spec.Template.Spec.Containers[0].Args
}

// expectEdit edits the tool ping and waits until the pod answers with it.
func expectEdit(ctx context.Context, ns *harness.Namespace, text string) {
	GinkgoHelper()
	tool := &v1alpha1.MCPTool{}
	ns.Update(ctx, "ping", tool, func() { tool.Spec.Expression.Text = `"` + text + `"` })
	Eventually(ctx, func() (string, error) {
		answer, err := ns.Peers(ctx, "first")[0].Call(ctx, "ping", nil)
		if err != nil {
			return "", err
		}
		return answer.Text(), nil
	}).WithTimeout(harness.ServedTimeout).Should(Equal(text))
	ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
}

// operatorMay asks the API server whether the operator may get Secrets of a namespace.
func operatorMay(ctx context.Context, namespace string) bool {
	GinkgoHelper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + harness.OperatorNamespace + ":" + harness.OperatorAccount,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + harness.OperatorNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "get", Resource: "secrets"},
	}}
	Expect(cluster.Client.Create(ctx, review)).To(Succeed())
	return review.Status.Allowed
}

func expectNoClusterRoles(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}} {
		metadata := &metav1.PartialObjectMetadataList{}
		kind, err := cluster.Client.GroupVersionKindFor(list)
		Expect(err).NotTo(HaveOccurred())
		metadata.SetGroupVersionKind(kind)
		Expect(cluster.Client.List(ctx, metadata, client.MatchingLabels{"app.kubernetes.io/name": "espalier"})).To(Succeed())
		Expect(metadata.Items).To(BeEmpty(), "%T", list)
	}
}

// crds are the names of Espalier's CRDs.
func crds(ctx context.Context) []string {
	GinkgoHelper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("apiextensions.k8s.io/v1")
	list.SetKind("CustomResourceDefinitionList")
	Expect(cluster.Client.List(ctx, list)).To(Succeed())
	var names []string
	for _, crd := range list.Items {
		if group, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); group == v1alpha1.GroupVersion.Group {
			names = append(names, crd.GetName())
		}
	}
	slices.Sort(names)
	return names
}
