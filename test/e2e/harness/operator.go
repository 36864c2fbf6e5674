// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Where config/default puts the operator.
const (
	OperatorNamespace  = "espalier-system"
	OperatorDeployment = "espalier-manager"
	OperatorAccount    = "espalier-manager"
	OperatorRole       = "espalier-manager"
)

var operatorLabels = client.MatchingLabels{"control-plane": "controller-manager", "app.kubernetes.io/name": "espalier"}

// OperatorPods are the operator's pods that are not being deleted.
func (c *Cluster) OperatorPods(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	n := &Namespace{Cluster: c, Name: OperatorNamespace}
	return n.podsOf(ctx, operatorLabels)
}

// AwaitOperator waits until the operator runs and one of its pods leads.
func (c *Cluster) AwaitOperator(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var d appsv1.Deployment
		g.Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorDeployment}, &d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(d.Status.Replicas).To(Equal(*d.Spec.Replicas), "operator pods")
		g.Expect(d.Status.AvailableReplicas).To(Equal(*d.Spec.Replicas), "available operator pods")
		g.Expect(c.leads(ctx)).To(Succeed())
	}).WithTimeout(OperatorTimeout).WithPolling(Poll).Should(Succeed(), "the operator")
}

// leads returns nil if a living pod holds the operator's Lease.
func (c *Cluster) leads(ctx context.Context) error {
	var leases coordinationv1.LeaseList
	if err := c.Client.List(ctx, &leases, client.InNamespace(OperatorNamespace)); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(OperatorNamespace), operatorLabels); err != nil {
		return err
	}
	for _, lease := range leases.Items {
		for _, pod := range pods.Items {
			holder := lease.Spec.HolderIdentity
			if pod.DeletionTimestamp == nil && holder != nil && len(*holder) > len(pod.Name) && (*holder)[:len(pod.Name)] == pod.Name {
				return nil
			}
		}
	}
	return fmt.Errorf("none of %d leases is held by a living pod of the operator", len(leases.Items))
}

// KillOperator deletes the operator's pods at once, as the loss of a node would.
func (c *Cluster) KillOperator(ctx context.Context) {
	GinkgoHelper()
	for _, pod := range c.OperatorPods(ctx) {
		Expect(c.Client.Delete(ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// ScaleOperator sets how many pods the operator has and waits for that. The
// operator is scaled back when the spec ends.
func (c *Cluster) ScaleOperator(ctx context.Context, replicas int32) {
	GinkgoHelper()
	c.setOperatorReplicas(ctx, replicas)
	if replicas > 0 {
		c.AwaitOperator(ctx)
		return
	}
	DeferCleanup(func(ctx context.Context) {
		c.setOperatorReplicas(ctx, 1)
		c.AwaitOperator(ctx)
	})
	Eventually(ctx, func() int {
		var pods corev1.PodList
		Expect(c.Client.List(ctx, &pods, client.InNamespace(OperatorNamespace), operatorLabels)).To(Succeed())
		return len(pods.Items)
	}).WithTimeout(OperatorTimeout).WithPolling(Poll).Should(BeZero(), "pods of the operator")
}

func (c *Cluster) setOperatorReplicas(ctx context.Context, replicas int32) {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = OperatorNamespace, OperatorDeployment
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	Expect(c.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}
