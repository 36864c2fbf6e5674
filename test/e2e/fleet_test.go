// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const fleetSize = 20

var _ = Describe("A fleet of 20 servers", Label(slow, disruptive), Serial, func() {
	It("ends Ready, and nothing twice, when the operator is killed in the middle of its rollouts", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "fleet")
		name := fleetName

		By("killing the operator while the servers start")
		for i := range fleetSize {
			ns.Create(ctx, harness.Server(name(i), 1), harness.Tool(name(i), name(i), harness.Says(`"x"`)))
		}
		Eventually(ctx, func() int { return readyServers(ctx, ns, 1) }).
			WithTimeout(harness.FleetTimeout).WithPolling(harness.Poll).Should(BeNumerically(">=", 3))
		harness.Say("killed the operator when %d of %d servers were ready", readyServers(ctx, ns, 1), fleetSize)
		start := time.Now()
		cluster.KillOperator(ctx)
		Eventually(ctx, func() int { return readyServers(ctx, ns, 1) }).
			WithTimeout(harness.FleetTimeout).WithPolling(2 * harness.Poll).Should(Equal(fleetSize))
		harness.Say("all %d ready %s later", fleetSize, time.Since(start).Round(time.Second))
		expectNothingTwice(ctx, ns, 1)

		By("killing the operator while each server's pod is replaced")
		for i := range fleetSize {
			server := &v1alpha1.MCPServer{}
			ns.Update(ctx, name(i), server, func() { server.Spec.Workload.Labels = map[string]string{"example.com/round": "2"} })
			if i == fleetSize/2 {
				cluster.KillOperator(ctx)
			}
		}
		Eventually(ctx, func() int { return readyServers(ctx, ns, 2) }).
			WithTimeout(harness.FleetTimeout).WithPolling(2 * harness.Poll).Should(Equal(fleetSize))
		expectNothingTwice(ctx, ns, 2)
		Eventually(ctx, func() error { return allServed(ctx, ns) }).WithTimeout(harness.ServedTimeout).Should(Succeed())
		ns.Show(ctx, "Twenty servers after their operator was killed twice")
	}, SpecTimeout(15*time.Minute))
})

// readyServers counts the servers that are Ready with a pod of round.
func readyServers(ctx SpecContext, ns *harness.Namespace, round int) int {
	GinkgoHelper()
	var servers v1alpha1.MCPServerList
	Expect(ns.Client.List(ctx, &servers, client.InNamespace(ns.Name))).To(Succeed())
	ready := 0
	for i := range servers.Items {
		s := &servers.Items[i]
		if harness.Has(s, harness.Ready) != nil || harness.Condition(s, v1alpha1.ConditionReconciling) != nil {
			continue
		}
		pods := ns.Pods(ctx, s.Name)
		if len(pods) == 1 && (round == 1 || pods[0].Labels["example.com/round"] == fmt.Sprint(round)) {
			ready++
		}
	}
	return ready
}

// expectNothingTwice expects one child of each kind per server, and one
// ReplicaSet per round of rollouts.
func expectNothingTwice(ctx SpecContext, ns *harness.Namespace, rounds int) {
	GinkgoHelper()
	ours := []client.ListOption{client.InNamespace(ns.Name), client.HasLabels{v1alpha1.LabelServer}}
	var deployments appsv1.DeploymentList
	Expect(ns.Client.List(ctx, &deployments, ours...)).To(Succeed())
	Expect(deployments.Items).To(HaveLen(fleetSize))
	for _, d := range deployments.Items {
		Expect(d.Annotations).To(HaveKeyWithValue("deployment.kubernetes.io/revision", fmt.Sprint(rounds)), "rollouts of %s", d.Name)
	}
	var sets appsv1.ReplicaSetList
	Expect(ns.Client.List(ctx, &sets, ours...)).To(Succeed())
	Expect(sets.Items).To(HaveLen(rounds * fleetSize))
	var services corev1.ServiceList
	Expect(ns.Client.List(ctx, &services, ours...)).To(Succeed())
	Expect(services.Items).To(HaveLen(fleetSize))
	var catalogs corev1.ConfigMapList
	Expect(ns.Client.List(ctx, &catalogs, ours...)).To(Succeed())
	Expect(catalogs.Items).To(HaveLen(fleetSize))
}
