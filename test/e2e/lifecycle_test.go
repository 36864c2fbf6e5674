// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("A server of type Tools", func() {
	It("serves its tools to clients of both eras through each pod and the Service", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "tools")
		ns.Create(ctx, harness.Server("hello", 2),
			harness.Tool("greet", "hello", harness.Says(`"Hello, " + args.name + "!"`), func(t *v1alpha1.MCPTool) {
				t.Spec.Description = "Greets a person."
				t.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)}
			}),
			harness.Tool("later", "hello", func(t *v1alpha1.MCPTool) { t.Spec.Description = "Has no handler yet." }),
		)
		expectReplicas(ctx, ns, "hello", 2)
		server := ns.AwaitServer(ctx, "hello", harness.ReadyTimeout, harness.Ready,
			harness.Is(v1alpha1.ConditionSynced, metav1.ConditionTrue, v1alpha1.ReasonSynced))
		ns.AwaitTool(ctx, "greet", harness.ServedTimeout, harness.Served)
		ns.AwaitTool(ctx, "later", harness.ServedTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonNoExecutor))
		ns.Show(ctx, "A server with two tools")

		Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(2)))
		Expect(server.Status.URL).To(Equal("http://hello-mcp." + ns.Name + ".svc:8080/mcp"))

		peers := []*harness.Peer{ns.ServicePeer(ctx, "hello")}
		peers = append(peers, ns.Peers(ctx, "hello")...)
		Expect(peers).To(HaveLen(3))
		for _, peer := range peers {
			for era, version := range harness.Eras {
				By(era + " client at " + peer.Name)
				session := peer.Session(ctx, version)
				Expect(session.InitializeResult().ProtocolVersion).To(Equal(version))
				list, err := session.ListTools(ctx, nil)
				Expect(err).NotTo(HaveOccurred())
				Expect(list.Tools).To(HaveLen(2))
				result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
				Expect(err).NotTo(HaveOccurred())
				Expect(result.IsError).To(BeFalse())
				Expect(result.Content[0].(*sdk.TextContent).Text).To(Equal("Hello, Ada!"))

				result, err = session.CallTool(ctx, &sdk.CallToolParams{Name: "greet", Arguments: map[string]any{}})
				Expect(err).NotTo(HaveOccurred(), "arguments that do not fit are an answer that a model can read")
				Expect(result.IsError).To(BeTrue())
				result, err = session.CallTool(ctx, &sdk.CallToolParams{Name: "later", Arguments: map[string]any{}})
				Expect(err).NotTo(HaveOccurred())
				Expect(result.IsError).To(BeTrue())
				Expect(result.Content[0].(*sdk.TextContent).Text).To(ContainSubstring("no executor configured"))
			}
		}
	})

	It("says that it is scaled to zero or suspended, which are no failures", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "states")
		ns.Create(ctx, harness.Server("napping", 1), harness.Tool("ping", "napping", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "napping", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)

		By("kubectl scale --replicas=0")
		ns.Kubectl(ctx, "scale", "mcpserver/napping", "--replicas=0")
		expectResting(ctx, ns, v1alpha1.ReasonScaledToZero, 0)
		ns.Show(ctx, "Scaled to zero")

		By("kubectl scale --replicas=1")
		ns.Kubectl(ctx, "scale", "mcpserver/napping", "--replicas=1")
		ns.AwaitServer(ctx, "napping", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)

		By("suspend: true")
		ns.Kubectl(ctx, "patch", "mcpserver/napping", "--type=merge", "--patch", `{"spec":{"suspend":true}}`)
		expectResting(ctx, ns, v1alpha1.ReasonSuspended, 1)
		ns.Show(ctx, "Suspended")

		By("suspend: false")
		ns.Kubectl(ctx, "patch", "mcpserver/napping", "--type=merge", "--patch", `{"spec":{"suspend":false}}`)
		ns.AwaitServer(ctx, "napping", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Served)
	})

	It("follows its type: children of the old type go, those of the new come", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "type")
		ns.Create(ctx, harness.Server("target", 1), harness.Tool("ping", "target", harness.Says(`"pong"`)),
			harness.Server("changing", 1))
		ns.AwaitServer(ctx, "target", harness.ReadyTimeout, harness.Ready)
		ns.AwaitServer(ctx, "changing", harness.ReadyTimeout, harness.Ready)

		server := &v1alpha1.MCPServer{}
		ns.Update(ctx, "changing", server, func() {
			server.Spec = v1alpha1.MCPServerSpec{Type: v1alpha1.TypeExternal,
				External: &v1alpha1.Connection{URL: "http://target-mcp." + ns.Name + ".svc:8080/mcp"}}
		})
		server = ns.AwaitServer(ctx, "changing", harness.ReadyTimeout, harness.Ready,
			harness.Is(v1alpha1.ConditionAvailable, metav1.ConditionTrue, v1alpha1.ReasonNotApplicable))
		Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(1)))
		Eventually(ctx, func() []string { return ns.Owned(ctx, "changing") }).
			WithTimeout(harness.DeleteTimeout).Should(BeEmpty(), "children of the old type")
	})
})

// expectResting waits for a server without pods, which is a state and no failure.
func expectResting(ctx SpecContext, ns *harness.Namespace, reason string, replicas int) {
	GinkgoHelper()
	server := ns.AwaitServer(ctx, "napping", harness.ReadyTimeout,
		harness.Is(v1alpha1.ConditionReady, metav1.ConditionTrue, reason),
		harness.Is(v1alpha1.ConditionHealthy, metav1.ConditionUnknown, reason))
	Expect(harness.Condition(server, v1alpha1.ConditionStalled)).To(BeNil())
	Expect(harness.Condition(server, v1alpha1.ConditionReconciling)).To(BeNil())
	Expect(server.Spec.Replicas).To(HaveValue(BeEquivalentTo(replicas)))
	Expect(server.Status.ToolCount).To(BeNil(), "what is not proved is unknown, not 0")
	Expect(server.Status.HealthyReplicas).To(HaveValue(BeZero()))
	ns.AwaitTool(ctx, "ping", harness.ServedTimeout, harness.Is(v1alpha1.ConditionServed, metav1.ConditionUnknown, reason))
	Eventually(ctx, func() []corev1.Pod { return ns.Pods(ctx, "napping") }).
		WithTimeout(harness.StatusTimeout).Should(BeEmpty())
}
