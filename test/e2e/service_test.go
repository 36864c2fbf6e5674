// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("A server that is probed by way of its Service", func() {
	It("is proved and judged like any other, and follows its pods", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "by-service")
		ns.Create(ctx, harness.Server("front", 2, harness.Probed(probeInterval, probeTimeout, probeThreshold), func(s *v1alpha1.MCPServer) {
			s.Spec.Probe.Via = v1alpha1.ProbeViaService
		}), harness.Tool("ping", "front", harness.Says(`"one"`)))
		proved := state{
			server: "front", ready: readyIs(metav1.ConditionTrue, v1alpha1.ReasonProved), kstatus: status.CurrentStatus,
			others: []string{"Healthy True Proved", "Synced True Synced"},
		}
		line := expectState(ctx, ns, proved)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
		changedTool(ctx, ns, "ping", `"two"`)
		ns.AwaitTool(ctx, "ping", harness.ReadyTimeout, harness.Served)
		for _, peer := range ns.Peers(ctx, "front") {
			answer, err := peer.Call(ctx, "ping", nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.Text()).To(Equal("two"))
		}
		var thaw []func()
		for _, pod := range ns.Pods(ctx, "front") {
			thaw = append(thaw, harness.Freeze(&pod))
		}
		seen, took := ns.AwaitServerFor(ctx, "front", noticedWithin, harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse))
		ready := harness.Condition(seen, v1alpha1.ConditionReady)
		harness.Say("%s\nfrozen, it was told of after %s: %s: %s", line, took.Round(100*time.Millisecond), ready.Reason, ready.Message)
		for _, f := range thaw {
			f()
		}
		ns.AwaitServer(ctx, "front", recoveredWithin, harness.Ready)
	}, SpecTimeout(5*time.Minute))
})
