// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("Tools of one server", func() {
	It("with one name: the oldest wins, the loser names it, and follows it when it goes", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "conflict")
		named := func(t *v1alpha1.MCPTool) { t.Spec.Name = "ask" }
		// The older one comes last by name: age decides before the name.
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("z-first", "front", harness.Says(`"first"`), named))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		time.Sleep(1100 * time.Millisecond) // creationTimestamp counts in seconds
		ns.Create(ctx, harness.Tool("a-second", "front", harness.Says(`"second"`), named))

		ns.AwaitTool(ctx, "a-second", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonConflict).Saying("z-first"),
			harness.Is(v1alpha1.ConditionServed, metav1.ConditionFalse))
		ns.AwaitTool(ctx, "z-first", harness.ServedTimeout, harness.Served)
		ns.Show(ctx, "Two tools of one name")
		expectAnswer(ctx, ns, "front", "ask", "first")

		ns.Delete(ctx, &v1alpha1.MCPTool{ObjectMeta: harness.Meta("z-first")})
		ns.AwaitTool(ctx, "a-second", harness.ServedTimeout, harness.Served)
		expectAnswer(ctx, ns, "front", "ask", "second")
	})

	It("are not harmed by one whose schema or expression is broken", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "broken")
		ns.Create(ctx, harness.Server("front", 1), harness.Tool("sound", "front", harness.Says(`"sound"`)))
		ns.AwaitServer(ctx, "front", harness.ReadyTimeout, harness.Ready)
		ns.Create(ctx,
			harness.Tool("bad-schema", "front", harness.Says(`"x"`), func(t *v1alpha1.MCPTool) {
				t.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"a":{"type":"nonsense"}}}`)}
			}),
			harness.Tool("bad-expression", "front", harness.Says(`"unclosed`)),
			harness.Tool("added-later", "front", harness.Says(`"later"`)),
		)
		ns.AwaitTool(ctx, "bad-schema", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidInputSchema),
			harness.Is(v1alpha1.ConditionServed, metav1.ConditionFalse, v1alpha1.ReasonNotAccepted))
		ns.AwaitTool(ctx, "bad-expression", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalidExpression))
		ns.AwaitTool(ctx, "added-later", harness.ServedTimeout, harness.Served)
		ns.AwaitTool(ctx, "sound", harness.ServedTimeout, harness.Served)
		server := ns.AwaitServer(ctx, "front", harness.ServedTimeout, harness.Ready)
		Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(2)))
		ns.Show(ctx, "Two broken tools among sound ones")
		expectAnswer(ctx, ns, "front", "sound", "sound")
		expectAnswer(ctx, ns, "front", "added-later", "later")

		_, err := ns.ServicePeer(ctx, "front").Call(ctx, "bad-schema", nil)
		var rpc *harness.RPCError
		Expect(errors.As(err, &rpc)).To(BeTrue(), "a tool that is not served is unknown: %v", err)
		Expect(rpc.Code).To(Equal(-32602))

		By("mending the expression")
		tool := &v1alpha1.MCPTool{}
		ns.Update(ctx, "bad-expression", tool, func() { tool.Spec.Expression.Text = `"mended"` })
		ns.AwaitTool(ctx, "bad-expression", harness.ServedTimeout, harness.Served)
		expectAnswer(ctx, ns, "front", "bad-expression", "mended")
	})

	It("are left out by include, exclude, filter and suspend, and told so", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "filter")
		classed := func(category string) func(*v1alpha1.MCPTool) {
			return func(t *v1alpha1.MCPTool) { t.Spec.Metadata = map[string]string{"category": category} }
		}
		ns.Create(ctx,
			harness.Server("front", 1, func(s *v1alpha1.MCPServer) {
				s.Spec.Tools = &v1alpha1.ToolsPolicy{Exclude: []string{"write-*"}, Filter: `tool.metadata.category != "internal"`}
			}),
			harness.Tool("read-it", "front", harness.Says(`"it"`), classed("public")),
			harness.Tool("write-it", "front", harness.Says(`"it"`), classed("public")),
			harness.Tool("read-ours", "front", harness.Says(`"it"`), classed("internal")),
			harness.Tool("read-later", "front", harness.Says(`"it"`), classed("public"), func(t *v1alpha1.MCPTool) { t.Spec.Suspend = harness.To(true) }),
		)
		filtered := harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonFiltered)
		ns.AwaitTool(ctx, "read-it", harness.ReadyTimeout, harness.Served)
		ns.AwaitTool(ctx, "write-it", harness.StatusTimeout, filtered.Saying("exclude"))
		ns.AwaitTool(ctx, "read-ours", harness.StatusTimeout, filtered.Saying("filter"))
		ns.AwaitTool(ctx, "read-later", harness.StatusTimeout,
			harness.Is(v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonSuspended))
		tools, err := ns.ServicePeer(ctx, "front").Tools(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(tools).To(And(HaveLen(1), HaveKey("read-it")))
	})
})

// expectAnswer calls a tool at each pod of the server.
func expectAnswer(ctx context.Context, ns *harness.Namespace, server, tool, want string) {
	GinkgoHelper()
	for _, peer := range ns.Peers(ctx, server) {
		answer, err := peer.Call(ctx, tool, nil)
		Expect(err).NotTo(HaveOccurred(), "call of %s at %s", tool, peer.Name)
		Expect(answer.IsError).To(BeFalse(), fmt.Sprintf("%s answers %q", tool, answer.Text()))
		Expect(answer.Text()).To(Equal(want), "answer of %s at %s", tool, peer.Name)
	}
}
