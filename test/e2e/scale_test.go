// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("Replicas", func() {
	It("are an autoscaler's where the manifest does not name them, and applying it again keeps them", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "hpa")
		ways := map[string][]string{
			"server-side": {"apply", "--server-side", "--filename=-"},
			"client-side": {"apply", "--filename=-"},
		}
		for name, apply := range ways {
			By("applying a manifest without replicas, " + name)
			ns.KubectlIn(ctx, scaledManifest(name, "1"), apply...)
			server := ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
			Expect(server.Spec.Replicas).To(HaveValue(BeEquivalentTo(1)))
			ns.Create(ctx, autoscaler(name, 3))
		}
		for name, apply := range ways {
			By("the autoscaler takes it from 1 to 3")
			expectReplicas(ctx, ns, name, 3)
			ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)

			By("applying a changed manifest again, " + name)
			ns.KubectlIn(ctx, scaledManifest(name, "2"), apply...)
			ns.AwaitServer(ctx, name, harness.StatusTimeout, harness.Ready)
			Consistently(ctx, func() *int32 {
				server := &v1alpha1.MCPServer{}
				ns.Get(ctx, name, server)
				Expect(server.Spec.ServerInfo.Version).To(Equal("2"))
				return server.Spec.Replicas
			}).WithTimeout(10*time.Second).WithPolling(2*harness.Poll).Should(HaveValue(BeEquivalentTo(3)), "replicas after another apply")
			Expect(ns.Pods(ctx, name)).To(HaveLen(3))
		}
		ns.Show(ctx, "Two servers under autoscalers")
	}, SpecTimeout(6*time.Minute))
})

func scaledManifest(name, version string) string {
	return fmt.Sprintf(`
apiVersion: mcp.espalier.dev/v1alpha1
kind: MCPServer
metadata:
  name: %s
spec:
  serverInfo: {version: "%s"}
  terminationGracePeriodSeconds: 10
  workload:
    resources: {requests: {cpu: 5m, memory: 24Mi}}
`, name, version)
}

func autoscaler(server string, minimum int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: harness.Meta(server),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "MCPServer", Name: server,
			},
			MinReplicas: &minimum, MaxReplicas: minimum + 2,
		},
	}
}

func expectReplicas(ctx SpecContext, ns *harness.Namespace, name string, want int) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		server := &v1alpha1.MCPServer{}
		ns.Get(ctx, name, server)
		g.Expect(server.Spec.Replicas).To(HaveValue(BeEquivalentTo(want)), "spec.replicas")
		g.Expect(server.Status.Replicas).To(HaveValue(BeEquivalentTo(want)), "status.replicas")
		g.Expect(server.Status.HealthyReplicas).To(HaveValue(BeEquivalentTo(want)), "status.healthyReplicas")
	}).WithTimeout(harness.RolloutTimeout).WithPolling(2 * harness.Poll).Should(Succeed())
}
