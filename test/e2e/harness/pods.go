// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// Pods of the MCPServer that are not being deleted, by name.
func (n *Namespace) Pods(ctx context.Context, server string) []corev1.Pod {
	GinkgoHelper()
	return n.podsOf(ctx, client.MatchingLabels{v1alpha1.LabelServer: server})
}

// PodsOfApp are the pods of a Workload.
func (n *Namespace) PodsOfApp(ctx context.Context, app string) []corev1.Pod {
	GinkgoHelper()
	return n.podsOf(ctx, client.MatchingLabels{"app": app})
}

func (n *Namespace) podsOf(ctx context.Context, labels client.MatchingLabels) []corev1.Pod {
	GinkgoHelper()
	var list corev1.PodList
	Expect(n.Client.List(ctx, &list, client.InNamespace(n.Name), labels)).To(Succeed())
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// Identity of pods: their UIDs and how often their containers restarted.
func Identity(pods []corev1.Pod) []string {
	var out []string
	for _, p := range pods {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		out = append(out, fmt.Sprintf("%s restarted %d times", p.UID, restarts))
	}
	slices.Sort(out)
	return out
}

// AwaitRollout waits until the Deployment has replaced all of its pods.
func (n *Namespace) AwaitRollout(ctx context.Context, name string, timeout time.Duration) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		var d appsv1.Deployment
		g.Expect(n.Client.Get(ctx, client.ObjectKey{Namespace: n.Name, Name: name}, &d)).To(Succeed())
		g.Expect(d.Status.ObservedGeneration).To(Equal(d.Generation), "the Deployment's controller is behind")
		want := int32(1)
		if d.Spec.Replicas != nil {
			want = *d.Spec.Replicas
		}
		g.Expect(d.Status.UpdatedReplicas).To(Equal(want), "updated pods")
		g.Expect(d.Status.Replicas).To(Equal(want), "pods")
		g.Expect(d.Status.AvailableReplicas).To(Equal(want), "available pods")
	}).WithTimeout(timeout).WithPolling(Poll).Should(Succeed(), "rollout of %s", name)
}

// AwaitRollouts waits until each Deployment in the namespace has its pods,
// those of the tests' own backends too.
func (n *Namespace) AwaitRollouts(ctx context.Context, timeout time.Duration) {
	GinkgoHelper()
	var all appsv1.DeploymentList
	Expect(n.Client.List(ctx, &all, client.InNamespace(n.Name))).To(Succeed())
	for _, d := range all.Items {
		n.AwaitRollout(ctx, d.Name, timeout)
	}
}

// Revision of the Deployment: it grows by one with each rollout.
func (n *Namespace) Revision(ctx context.Context, deployment string) string {
	GinkgoHelper()
	var d appsv1.Deployment
	n.Get(ctx, deployment, &d)
	return d.Annotations["deployment.kubernetes.io/revision"]
}
