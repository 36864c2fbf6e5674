// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// How the servers of these tests are probed, and so how long a failure may
// stay unseen: interval + failureThreshold x timeout + 6 s. The test begins a
// failure right after a proof, which is the worst case, and sees the status
// by polling.
const (
	probeInterval  = 5
	probeTimeout   = 2
	probeThreshold = 3
	bound          = (probeInterval + probeThreshold*probeTimeout + 6) * time.Second
	seenAfter      = time.Second
	noticedWithin  = bound + seenAfter
	// recoveredWithin: back-off after failures, and the kubelet's after crashes.
	recoveredWithin = 90 * time.Second
)

var _ = Describe("A server of type Container", func() {
	It("that freezes, answers garbage or crashes is not Ready within the bound, and Ready again after", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "failing")
		server := harness.Container("fake", 1, harness.FakeMCPImage)
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
		ns.Create(ctx, server)
		ns.AwaitServer(ctx, "fake", harness.ReadyTimeout, harness.Ready)
		pod := &ns.Pods(ctx, "fake")[0]

		for _, failure := range []struct {
			name    string
			begin   func() (end func())
			reasons []string
			says    []string
		}{
			{
				"frozen by SIGSTOP", func() func() { return harness.Freeze(pod) },
				[]string{string(mcpprobe.Timeout)}, []string{"No answer to"},
			},
			{
				"answering garbage", func() func() {
					harness.SetMode(ctx, pod, "garbage")
					return func() { harness.SetMode(ctx, pod, "ok") }
				},
				[]string{string(mcpprobe.NotMCP)}, []string{string(mcpprobe.StepInitialize)},
			},
			{
				"hanging at tools/list", func() func() {
					harness.SetMode(ctx, pod, "hang-list")
					return func() { harness.SetMode(ctx, pod, "ok") }
				},
				[]string{string(mcpprobe.Timeout)}, []string{string(mcpprobe.StepTools)},
			},
			{
				"crash-looping", func() func() { return harness.Crashing(ctx, pod) },
				[]string{v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonContainerExited}, []string{"3"},
			},
		} {
			By(failure.name)
			end := failure.begin()
			seen, took := ns.AwaitServerFor(ctx, "fake", noticedWithin,
				harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, failure.reasons...).Saying(failure.says...))
			ready := harness.Condition(seen, v1alpha1.ConditionReady)
			harness.Say("%s: not Ready after %s (bound %s): %s: %s", failure.name, took.Round(100*time.Millisecond), bound, ready.Reason, ready.Message)
			Expect(ready.Message).NotTo(ContainSubstring("garbage"), "a peer's words do not belong into status")
			Expect(seen.Status.HealthyReplicas).To(HaveValue(BeZero()))
			ns.Show(ctx, failure.name)

			end()
			_, took = ns.AwaitServerFor(ctx, "fake", recoveredWithin, harness.Ready)
			harness.Say("%s: Ready again %s after it ended", failure.name, took.Round(100*time.Millisecond))
		}
	}, SpecTimeout(8*time.Minute))

	It("with one bad replica of three names it and counts the others", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "one-of-three")
		server := harness.Container("fake", 3, harness.FakeMCPImage)
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
		ns.Create(ctx, server)
		expectReplicas(ctx, ns, "fake", 3)
		ns.AwaitServer(ctx, "fake", harness.ReadyTimeout, harness.Ready)
		bad := &ns.Pods(ctx, "fake")[1]
		thaw := harness.Freeze(bad)
		seen, took := ns.AwaitServerFor(ctx, "fake", noticedWithin,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, string(mcpprobe.Timeout)).Saying(bad.Name, "1 of 3"))
		harness.Say("one frozen replica of three was named after %s: %s", took.Round(100*time.Millisecond),
			harness.Condition(seen, v1alpha1.ConditionReady).Message)
		Expect(seen.Status.HealthyReplicas).To(HaveValue(BeEquivalentTo(2)))
		ns.Show(ctx, "One frozen replica of three")
		thaw()
		ns.AwaitServer(ctx, "fake", recoveredWithin, harness.Ready)
		expectReplicas(ctx, ns, "fake", 3)
	}, SpecTimeout(5*time.Minute))

	It("with a gate gets no traffic before it was proved", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "gate")
		server := harness.Container("fake", 1, harness.FakeMCPImage, "--mode=garbage")
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
		server.Spec.Probe.GateReadiness = harness.To(true)
		ns.Create(ctx, server)
		ns.AwaitServer(ctx, "fake", harness.ReadyTimeout, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, string(mcpprobe.NotMCP)))
		pod := &ns.Pods(ctx, "fake")[0]
		Expect(podReady(pod)).To(BeFalse(), "a pod behind a gate is not Ready before it was proved")
		harness.SetMode(ctx, pod, "ok")
		ns.AwaitServer(ctx, "fake", recoveredWithin, harness.Ready)
		Expect(podReady(&ns.Pods(ctx, "fake")[0])).To(BeTrue())
	}, SpecTimeout(5*time.Minute))

	It("that never starts ends Stalled with the reason of its pods", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "never")
		crashing := harness.Container("crashing", 1, harness.FakeMCPImage, "--crash")
		unpulled := harness.Container("unpulled", 1, "ghcr.io/espalier-dev/no-such-image:dev")
		for _, server := range []*v1alpha1.MCPServer{crashing, unpulled} {
			server.Spec.StartupTimeoutSeconds = harness.To(int32(15))
			ns.Create(ctx, server)
		}
		ns.AwaitServer(ctx, "crashing", harness.ReadyTimeout,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCrashLoopBackOff, v1alpha1.ReasonContainerExited),
			harness.Is(v1alpha1.ConditionStalled, metav1.ConditionTrue))
		ns.AwaitServer(ctx, "unpulled", harness.ReadyTimeout,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed),
			harness.Is(v1alpha1.ConditionStalled, metav1.ConditionTrue))
		ns.Show(ctx, "Two servers that cannot start")
	}, SpecTimeout(4*time.Minute))
})

var _ = Describe("A server of type Tools whose process is frozen", func() {
	It("is told of, and cured by the liveness probe", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "liveness")
		ns.Create(ctx, harness.Server("front", 1, harness.Probed(probeInterval, probeTimeout, probeThreshold)),
			harness.Tool("ping", "front", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		before := ns.Pods(ctx, "front")[0]
		harness.Freeze(&before)
		seen, took := ns.AwaitServerFor(ctx, "front", noticedWithin, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse))
		ready := harness.Condition(seen, v1alpha1.ConditionReady)
		harness.Say("a frozen Tools server was told of after %s: %s: %s", took.Round(100*time.Millisecond), ready.Reason, ready.Message)
		Eventually(ctx, func() int32 {
			after := ns.Pods(ctx, "front")[0]
			Expect(after.UID).To(Equal(before.UID))
			return after.Status.ContainerStatuses[0].RestartCount
		}).WithTimeout(harness.RolloutTimeout).WithPolling(2*harness.Poll).Should(BeEquivalentTo(1), "restarts by the liveness probe")
		_, took = ns.AwaitServerFor(ctx, "front", recoveredWithin, harness.Ready)
		harness.Say("it was Ready again %s after the restart", took.Round(100*time.Millisecond))
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
		expectAnswer(ctx, ns, "front", "ping", "pong")
	}, SpecTimeout(6*time.Minute))
})

var _ = Describe("A server of type External", func() {
	It("is reported as what answers at its URL is", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "external")
		deployment, service := harness.Workload("vendor", harness.FakeMCPImage, 8080)
		ns.Create(ctx, deployment, service)
		ns.AwaitRollout(ctx, "vendor", harness.ReadyTimeout)
		server := harness.External("vendor", "http://vendor."+ns.Name+".svc/mcp")
		harness.Probed(probeInterval, probeTimeout, probeThreshold)(server)
		ns.Create(ctx, server)
		ns.AwaitServer(ctx, "vendor", harness.ReadyTimeout, harness.Ready)
		Expect(ns.Owned(ctx, "vendor")).To(BeEmpty(), "nothing is deployed for it")
		pod := &ns.PodsOfApp(ctx, "vendor")[0]

		By("it wants a credential")
		harness.SetMode(ctx, pod, "auth")
		seen := ns.AwaitServer(ctx, "vendor", noticedWithin,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonAuthRequired),
			harness.Is(v1alpha1.ConditionHealthy, metav1.ConditionUnknown, v1alpha1.ReasonAuthRequired))
		Expect(seen.Status.ToolCount).To(BeNil())

		By("its gateway answers in its stead")
		harness.SetMode(ctx, pod, "bad-gateway")
		ns.AwaitServer(ctx, "vendor", noticedWithin+probeInterval*time.Second,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse, string(mcpprobe.UnexpectedStatus)).Saying("502"))

		By("it comes back with other tools")
		harness.SetMode(ctx, pod, "ok")
		Expect(harness.SetTools(ctx, pod, 7)).To(Succeed())
		ns.AwaitServer(ctx, "vendor", recoveredWithin, harness.Ready)
		Eventually(ctx, func() *int32 {
			ns.Get(ctx, "vendor", seen)
			return seen.Status.ToolCount
		}).WithTimeout(harness.ServedTimeout).Should(HaveValue(BeEquivalentTo(7)))

		By("a MCPTool names it")
		ns.Create(ctx, harness.Tool("ping", "vendor", harness.Says(`"pong"`)))
		ns.AwaitTool(ctx, "ping", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonServerNotFronted))
	}, SpecTimeout(5*time.Minute))
})

func podReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
