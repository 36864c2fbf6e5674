// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// How long nothing may be written, and how long an operator that starts is
// given to write something that it should not.
const (
	restFor       = 2 * time.Minute
	restartFor    = 45 * time.Second
	settleFor     = 15 * time.Second
	settleLimit   = 90 * time.Second
	stalledWithin = 150 * time.Second
	manyTools     = 100
)

var _ = Describe("At rest", func() {
	It("nothing is written for two minutes, nor by an operator that restarts", Label(slow, disruptive), Serial, func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "rest")
		backend := ns.Backend(ctx, "backend")
		named := func(t *v1alpha1.MCPTool) { t.Spec.Name = "same" }
		ns.Create(ctx,
			harness.Server("front", 3), harness.Server("asleep", 0),
			harness.Container("container", 1, harness.FakeMCPImage),
			harness.External("external", "http://front-mcp."+ns.Name+".svc:8080/mcp"),
			harness.External("nowhere", "http://nowhere."+ns.Name+".svc/mcp"),
			harness.Tool("a-same", "front", harness.Says(`"a"`), named),
			harness.Tool("b-same", "front", harness.Says(`"b"`), named),
			harness.Tool("broken", "front", harness.Says(`"unclosed`)),
			harness.Tool("lost", "nobody", harness.Says(`"x"`)),
			harness.Tool("unanswered", "front"),
			harness.Tool("missing-secret", "front", harness.Gets(backend.URL+"/echo/", v1alpha1.Header{
				Name: "Authorization", SecretKeyRef: &v1alpha1.SecretKeyRef{Name: "nobody", Key: "none"}})),
		)
		for _, name := range []string{"front", "container", "external"} {
			ns.AwaitServer(ctx, name, harness.RolloutTimeout, harness.Ready)
		}
		ns.AwaitServer(ctx, "asleep", harness.StatusTimeout, harness.Is(v1alpha1.ConditionReady, metav1.ConditionTrue))
		// One that never answered is Stalled when its start-up budget is over.
		ns.AwaitServer(ctx, "nowhere", stalledWithin,
			harness.Is(v1alpha1.ConditionReady, metav1.ConditionFalse), harness.Is(v1alpha1.ConditionStalled, metav1.ConditionTrue))
		settle(ctx, ns)
		ns.Show(ctx, "A fleet at rest, failures included")

		By("two minutes")
		writes, stop := ns.CountWrites(ctx)
		pause(ctx, restFor)
		stop()
		harness.Say("%d writes in %s at rest", len(writes.Lines()), restFor)
		Expect(writes.Lines()).To(BeEmpty())

		By("a restart of the operator")
		writes, stop = ns.CountWrites(ctx)
		ns.KillOperator(ctx)
		cluster.AwaitOperator(ctx)
		pause(ctx, restartFor)
		stop()
		harness.Say("%d writes by an operator that restarted", len(writes.Lines()))
		Expect(writes.Lines()).To(BeEmpty())
	}, SpecTimeout(12*time.Minute))

	It("a rolling restart of 3 replicas with 100 tools writes no tool, and a scale no ConfigMap", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "rolling")
		ns.Create(ctx, harness.Server("front", 3))
		for i := range manyTools {
			ns.Create(ctx, harness.Tool(fmt.Sprintf("tool-%03d", i), "front", harness.Says(`"x"`)))
		}
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		Eventually(ctx, func() error { return allServed(ctx, ns) }).
			WithTimeout(harness.ReadyTimeout).WithPolling(4 * harness.Poll).Should(Succeed())
		settle(ctx, ns)
		server := ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(manyTools)))

		By("kubectl rollout restart")
		ready := watchCondition(ctx, ns, "front", v1alpha1.ConditionReady)
		writes, stop := ns.CountWrites(ctx, "MCPTool", "ConfigMap")
		ns.Kubectl(ctx, "rollout", "restart", "deployment/front-mcp")
		ns.AwaitRollout(ctx, "front-mcp", harness.RolloutTimeout)
		expectReplicas(ctx, ns, "front", 3)
		pause(ctx, settleFor)
		stop()
		harness.Say("a rolling restart of 3 replicas with %d tools: %d writes of MCPTools and ConfigMaps, Ready was %v",
			manyTools, len(writes.Lines()), ready.seen())
		Expect(writes.Lines()).To(BeEmpty())
		Expect(ready.seen()).To(HaveEach(HavePrefix("True")), "Ready during a rollout")

		By("kubectl scale --replicas=4")
		writes, stop = ns.CountWrites(ctx, "MCPTool", "ConfigMap")
		ns.Kubectl(ctx, "scale", "mcpserver/front", "--replicas=4")
		expectReplicas(ctx, ns, "front", 4)
		pause(ctx, settleFor)
		stop()
		harness.Say("kubectl scale from 3 to 4: %d writes of MCPTools and ConfigMaps, Ready was %v", len(writes.Lines()), ready.seen())
		Expect(writes.Lines()).To(BeEmpty())
		Expect(ready.seen()).To(HaveEach(HavePrefix("True")), "Ready during a scale")
		ns.AwaitServer(ctx, "front", harness.StatusTimeout, harness.Ready)
	}, SpecTimeout(8*time.Minute))
})

// pause lets time pass in which something must not happen.
func pause(ctx SpecContext, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// settle waits until nothing was written for a while.
func settle(ctx SpecContext, ns *harness.Namespace) {
	GinkgoHelper()
	writes, stop := ns.CountWrites(ctx)
	defer stop()
	quiet, last := 0, time.Now()
	Eventually(ctx, func() time.Duration {
		if n := len(writes.Lines()); n != quiet {
			quiet, last = n, time.Now()
		}
		return time.Since(last)
	}).WithTimeout(settleLimit).WithPolling(2*harness.Poll).Should(BeNumerically(">", settleFor), "writes go on:\n%v", writes)
}

// allServed returns nil if each tool, resource and prompt of the namespace is
// Served.
func allServed(ctx SpecContext, ns *harness.Namespace) error {
	for _, list := range []client.ObjectList{&v1alpha1.MCPToolList{}, &v1alpha1.MCPResourceList{}, &v1alpha1.MCPPromptList{}} {
		if err := ns.Client.List(ctx, list, client.InNamespace(ns.Name)); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			return harness.Has(item.(client.Object), harness.Served)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
