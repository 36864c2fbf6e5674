// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

const (
	// givenUpWithin: the operator lags two intervals, and three of the kubelet's
	// looks at its health, 20 s apart, fail.
	givenUpWithin = 3 * time.Minute
	// behindRate is a tenth of what servers of behindServers would need.
	behindRate    = 0.1
	behindServers = 6
)

// changedTool gives the tool another answer.
func changedTool(ctx SpecContext, ns *harness.Namespace, name, answer string) {
	GinkgoHelper()
	t := &v1alpha1.MCPTool{}
	ns.Update(ctx, name, t, func() { t.Spec.Expression.Text = answer })
}

var _ = Describe("A change of the catalog", func() {
	It("that the kubelet cannot bring to a pod is told as such, and loaded by the next pod", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "sealed")
		ns.Create(ctx, harness.Server("front", 1, harness.Probed(probeInterval, probeTimeout, probeThreshold)),
			harness.Tool("ping", "front", harness.Says(`"one"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
		pod := ns.Pods(ctx, "front")[0]
		harness.Seal(&pod, resources.VolumeCatalog)
		changedTool(ctx, ns, "ping", `"two"`)

		lines := []string{expectState(ctx, ns, state{
			server: "front", ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), kstatus: status.InProgressStatus,
			others: []string{"Synced False CatalogPending", "Reconciling True CatalogPending"},
		})}
		lines = append(lines, expectState(ctx, ns, state{
			server: "front", ready: readyIs(metav1.ConditionFalse, v1alpha1.ReasonCatalogNotLoaded), kstatus: status.InProgressStatus,
			others: []string{"Synced False CatalogNotLoaded", "Healthy True Proved", "Available True Available"},
		}))
		seen := ns.AwaitServer(ctx, "front", harness.StatusTimeout,
			readyIs(metav1.ConditionFalse, v1alpha1.ReasonCatalogNotLoaded).Saying(pod.Name, "has not reached it", "kubectl describe pod "+pod.Name))
		Expect(harness.Condition(seen, v1alpha1.ConditionReconciling)).To(BeNil())
		ns.AwaitTool(ctx, "ping", harness.StatusTimeout, harness.Is(v1alpha1.ConditionServed, metav1.ConditionFalse))
		Expect(ns.Kubectl(ctx, "describe", "pod", pod.Name)).To(ContainSubstring("FailedMount"), "where the message leads to is the cause")
		answer, err := ns.Peers(ctx, "front")[0].Call(ctx, "ping", nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(Equal("one"), "the pod goes on with the catalog it has")
		ns.Show(ctx, "A catalog that does not reach its pod")

		harness.Say("%s", aligned("STATE\tREADY\tRECONCILING\tSTALLED\tKSTATUS", lines))

		ns.Delete(ctx, &pod)
		ns.AwaitServer(ctx, "front", harness.RolloutTimeout, harness.Ready, harness.Is(v1alpha1.ConditionSynced, metav1.ConditionTrue))
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
	}, SpecTimeout(8*time.Minute))
})

var _ = Describe("An operator that cannot keep up with its probes", func() {
	It("says that it does not know, gives up the Lease, and is right again when it can", Label(slow, disruptive), Serial, func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "behind")
		deployment, service := harness.Workload("fake", harness.FakeMCPImage, 8080)
		ns.Create(ctx, deployment, service)
		ns.AwaitRollout(ctx, "fake", harness.ReadyTimeout)
		var names []string
		for i := range behindServers {
			names = append(names, fmt.Sprintf("behind-%d", i))
			server := harness.External(names[i], "http://fake."+ns.Name+".svc/mcp")
			harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
			ns.Create(ctx, server)
		}
		for _, name := range names {
			ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
		}

		restore := cluster.RunOperatorWith(ctx, fmt.Sprintf("--probe-rate=%g", behindRate))
		leader := cluster.Leader(ctx)
		var lines []string
		for _, name := range names[:2] {
			lines = append(lines, expectState(ctx, ns, state{
				server: name, ready: readyIs(metav1.ConditionUnknown, v1alpha1.ReasonStale).Saying("espalier_probe_lag_seconds"),
				others: []string{"Healthy Unknown Stale"}, kstatus: status.InProgressStatus,
			}))
		}
		ns.Show(ctx, "An operator that is behind")
		Eventually(ctx, func(g Gomega) {
			pods := cluster.OperatorPods(ctx)
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].Status.ContainerStatuses[0].RestartCount).To(BeNumerically(">", 0), "its health check fails")
			g.Expect(cluster.Leader(ctx)).NotTo(Or(Equal(leader), BeEmpty()), "who held the Lease")
		}).WithTimeout(givenUpWithin).WithPolling(harness.Poll).Should(Succeed())
		harness.Say("%s", aligned("STATE\tREADY\tRECONCILING\tSTALLED\tKSTATUS", lines))

		restore(ctx)
		for _, name := range names {
			ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
		}
	}, SpecTimeout(10*time.Minute))
})
