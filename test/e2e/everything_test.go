// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// everythingTools is how many tools @modelcontextprotocol/server-everything has.
const everythingTools = 13

var _ = Describe("A third party's server (@modelcontextprotocol/server-everything)", func() {
	It("is proved as Container and as External, its tools counted and named", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "everything")
		container := harness.Container("everything", 1, harness.EverythingImage, "streamableHttp")
		container.Spec.Container.Port = harness.To(int32(3001))
		container.Spec.Workload.Env = []corev1.EnvVar{{Name: "PORT", Value: "3001"}}
		ns.Create(ctx, container)
		ns.AwaitServer(ctx, "everything", harness.ImageTimeout, harness.Ready)
		ns.Create(ctx, harness.External("elsewhere", "http://everything-mcp."+ns.Name+".svc:8080/mcp"))
		ns.AwaitServer(ctx, "elsewhere", harness.ReadyTimeout, harness.Ready)
		ns.Show(ctx, "server-everything as Container and as External")

		for _, name := range []string{"everything", "elsewhere"} {
			server := &v1alpha1.MCPServer{}
			ns.Get(ctx, name, server)
			Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(everythingTools)), name)
			var tools []string
			for _, tool := range server.Status.Tools {
				Expect(tool.Digest).To(HavePrefix("v1:sha256:"), "%s of %s", tool.Name, name)
				tools = append(tools, tool.Name)
			}
			Expect(tools).To(And(HaveLen(everythingTools), ContainElements("echo", "get-sum")))
			Expect(server.Status.Server.ProtocolVersion).To(Equal(mcp.Version20251125))
			Expect(server.Status.Server.Name).NotTo(BeEmpty())
		}

		By("a client calls it through the Service")
		session := ns.ServicePeer(ctx, "everything").Session(ctx, mcp.Version20251125)
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hello"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(result.Content[0].(*sdk.TextContent).Text).To(ContainSubstring("hello"))
	}, SpecTimeout(6*time.Minute))
})
