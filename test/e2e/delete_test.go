// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("Deleting a server", func() {
	// ready makes a server with each kind of child.
	ready := func(ctx SpecContext, ns *harness.Namespace) {
		GinkgoHelper()
		ns.Create(ctx, harness.Server("short-lived", 2), harness.Tool("ping", "short-lived", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "short-lived", harness.ReadyTimeout, harness.Ready)
		Expect(ns.Owned(ctx, "short-lived")).To(ContainElements(
			"*v1.Deployment short-lived-mcp", "*v1.Service short-lived-mcp", "*v1.Service short-lived-mcp-peers",
			"*v1.ConfigMap short-lived-mcp-catalog", "*v1.PodDisruptionBudget short-lived-mcp"))
	}
	// removed deletes it and waits until nothing of it is left.
	removed := func(ctx SpecContext, ns *harness.Namespace) {
		GinkgoHelper()
		server := &v1alpha1.MCPServer{ObjectMeta: harness.Meta("short-lived")}
		ns.Delete(ctx, server)
		ns.Gone(ctx, server)
		Eventually(ctx, func() []string { return ns.Owned(ctx, "short-lived") }).
			WithTimeout(harness.DeleteTimeout).Should(BeEmpty(), "left of a deleted server")
	}

	It("removes all that it made, and tells its tools", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "delete")
		ready(ctx, ns)
		removed(ctx, ns)
		ns.AwaitTool(ctx, "ping", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonServerNotFound))
	})

	It("removes all that it made when the operator is gone", Label(disruptive), Serial, func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "orphans")
		ready(ctx, ns)
		cluster.ScaleOperator(ctx, 0)
		removed(ctx, ns)
	})
})
