// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// How many tools the servers of the MCP project have.
const (
	// wrappedTools: one of server-everything's runs as a task only, which a
	// server that stands in front of it cannot do.
	wrappedTools    = everythingTools - 1
	memoryTools     = 9
	filesystemTools = 14
	// Resources and prompts of server-everything, and of server-memory.
	everythingResources, everythingPrompts = 7, 4
	memoryResources                        = 1
	npmFolder                              = "/app/node_modules/@modelcontextprotocol/"
)

// npmStdio wraps a command that an image from npm has.
func npmStdio(name string, command ...string) *v1alpha1.MCPServer {
	return harness.Stdio(name, harness.NPMImage, command...)
}

// npx wraps a server that is started as its authors say. Its package lies in
// the working directory, as npx would put it, since there is no registry.
func npx(name string, args ...string) *v1alpha1.MCPServer {
	server := npmStdio(name, append([]string{"npx", "-y"}, args...)...)
	server.Spec.Stdio.WorkingDir = npmFolder
	return server
}

var _ = Describe("Servers that others wrote", func() {
	It("are wrapped as Stdio, and stood before by URL over streamable HTTP and SSE", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "npm")
		memory := npx("memory", "@modelcontextprotocol/server-memory")
		memory.Spec.Stdio.Env = []corev1.EnvVar{{Name: "MEMORY_FILE_PATH", Value: "/tmp/memory.jsonl"}}
		ready := map[string]*history{}
		for _, name := range []string{"every", "memory", "files", "front"} {
			ready[name] = watchCondition(ctx, ns, name, v1alpha1.ConditionReady)
		}
		ns.Create(ctx, memory,
			npmStdio("every", "mcp-server-everything", "stdio"),
			npmStdio("files", "mcp-server-filesystem", "/tmp"),
		)
		for _, transport := range []string{"streamableHttp", "sse"} {
			startEverything(ctx, ns, transport)
		}
		front := harness.Server("front", 1)
		base := "." + ns.Name + ".svc"
		front.Spec.Upstreams = []v1alpha1.Upstream{
			{Name: "web", URL: "http://everything-streamablehttp" + base + "/mcp", Prefix: "web_"},
			{Name: "older", URL: "http://everything-sse" + base + "/sse", Prefix: "older_"},
			{Name: "memory", ServerRef: &v1alpha1.UpstreamServerRef{Name: "memory"}, Prefix: "mem_"},
			{Name: "files", ServerRef: &v1alpha1.UpstreamServerRef{Name: "files"}},
		}
		ns.Create(ctx, front)

		// URIs have no prefix: two upstreams with the same resources serve them once.
		for name, want := range map[string][3]int{
			"every":  {wrappedTools, everythingResources, everythingPrompts},
			"memory": {memoryTools, memoryResources, 0},
			"files":  {filesystemTools, 0, 0},
			"front":  {2*wrappedTools + memoryTools + filesystemTools, everythingResources + memoryResources, 2 * everythingPrompts},
		} {
			server := ns.AwaitServer(ctx, name, harness.ImageTimeout, harness.Ready,
				harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue, v1alpha1.ReasonUpstreamsReady))
			Eventually(ctx, func(g Gomega) {
				ns.Get(ctx, name, server)
				g.Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(want[0])), "tools of %s", name)
				g.Expect(server.Status.ResourceCount).To(HaveValue(BeEquivalentTo(want[1])), "resources of %s", name)
				g.Expect(server.Status.PromptCount).To(HaveValue(BeEquivalentTo(want[2])), "prompts of %s", name)
			}).WithTimeout(harness.ServedTimeout).WithPolling(harness.Poll).Should(Succeed())
			harness.Say("%s: %d tools, %d resources, %d prompts; upstreams %s", name, want[0], want[1], want[2], told(server))
		}
		ns.AwaitServer(ctx, "every", harness.StatusTimeout, harness.Is(v1alpha1.ConditionUpstreamsReady, metav1.ConditionTrue).
			Saying("TasksUnsupported", "simulate-research-query"))
		ns.Show(ctx, "Servers from npm, wrapped and behind a front")

		for name, history := range ready {
			harness.Say("Ready of %s was %v", name, history.seen())
			Expect(history.seen()).NotTo(ContainElement(ContainSubstring(v1alpha1.ReasonContainerExited)), "no failure is told on the way, %s", name)
		}

		By("all tools of each, under their names and under a prefix")
		own, behind := listed(ctx, ns, "every"), listed(ctx, ns, "front")
		for name, tool := range own {
			for _, prefix := range []string{"web_", "older_"} {
				Expect(behind).To(HaveKey(prefix + name))
				Expect(behind[prefix+name].Description).To(Equal(tool.Description))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(listed(ctx, ns, "memory"))) {
			Expect(behind).To(HaveKey("mem_" + name))
		}
		for _, name := range slices.Sorted(maps.Keys(listed(ctx, ns, "files"))) {
			Expect(behind).To(HaveKey(name))
		}

		By("calls answer in both eras, progress included")
		for era, version := range harness.Eras {
			callEverything(ctx, ns.ServicePeer(ctx, "every"), version, "", era)
			for _, prefix := range []string{"web_", "older_"} {
				callEverything(ctx, ns.ServicePeer(ctx, "front"), version, prefix, era)
			}
		}

		By("what is said to a wrapped server through one way is known through the other")
		say := func(server, tool string, args map[string]any) string {
			GinkgoHelper()
			answer, err := ns.ServicePeer(ctx, server).Call(ctx, tool, args)
			Expect(err).NotTo(HaveOccurred())
			Expect(answer.IsError).To(BeFalse(), "%s of %s answers %q", tool, server, answer.Text())
			return answer.Text()
		}
		say("front", "mem_create_entities", map[string]any{"entities": []any{
			map[string]any{"name": "Ada", "entityType": "person", "observations": []string{"writes programs"}},
		}})
		Expect(say("memory", "read_graph", nil)).To(ContainSubstring("writes programs"))
		say("files", "write_file", map[string]any{"path": "/tmp/note.txt", "content": "to be read"})
		Expect(say("front", "read_text_file", map[string]any{"path": "/tmp/note.txt"})).To(Equal("to be read"))
		refused, err := ns.ServicePeer(ctx, "front").Call(ctx, "read_text_file", map[string]any{"path": "/etc/passwd"})
		Expect(err).NotTo(HaveOccurred())
		Expect(refused.IsError).To(BeTrue(), "an error of the server behind is the tool's")
		Expect(refused.Text()).To(ContainSubstring("/etc/passwd"))
	}, SpecTimeout(8*time.Minute))
})

// startEverything runs server-everything behind a Service, by one of its
// transports over HTTP.
func startEverything(ctx SpecContext, ns *harness.Namespace, transport string) {
	GinkgoHelper()
	name := map[string]string{"streamableHttp": "everything-streamablehttp", "sse": "everything-sse"}[transport]
	deployment, service := harness.Workload(name, harness.NPMImage, 3001, transport)
	deployment.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PORT", Value: "3001"}}
	ns.Create(ctx, deployment, service)
}

func listed(ctx SpecContext, ns *harness.Namespace, server string) map[string]harness.ListedTool {
	GinkgoHelper()
	tools, err := ns.ServicePeer(ctx, server).Tools(ctx)
	Expect(err).NotTo(HaveOccurred())
	return tools
}

// callEverything calls tools of server-everything through the peer.
func callEverything(ctx SpecContext, peer *harness.Peer, version, prefix, era string) {
	GinkgoHelper()
	heard := make(chan float64, 16)
	session := peer.SessionWith(ctx, version, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { heard <- r.Params.Progress },
	})
	result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: prefix + "echo", Arguments: map[string]any{"message": era}})
	Expect(err).NotTo(HaveOccurred())
	Expect(result.Content[0].(*sdk.TextContent).Text).To(ContainSubstring(era))
	result, err = session.CallTool(ctx, &sdk.CallToolParams{Name: prefix + "get-structured-content", Arguments: map[string]any{"location": "New York"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(result.StructuredContent).To(HaveKey("temperature"))

	read, err := session.ReadResource(ctx, &sdk.ReadResourceParams{URI: "demo://resource/static/document/features.md"})
	Expect(err).NotTo(HaveOccurred())
	Expect(read.Contents[0].Text).To(ContainSubstring("Everything Server"))
	read, err = session.ReadResource(ctx, &sdk.ReadResourceParams{URI: "demo://resource/dynamic/text/7"})
	Expect(err).NotTo(HaveOccurred())
	Expect(read.Contents[0].Text).To(ContainSubstring("7"))
	templates, err := session.ListResourceTemplates(ctx, nil)
	Expect(err).NotTo(HaveOccurred())
	Expect(templates.ResourceTemplates).To(HaveLen(2))
	prompt, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: prefix + "args-prompt", Arguments: map[string]string{"city": "Bern"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(prompt.Messages[0].Content.(*sdk.TextContent).Text).To(ContainSubstring("Bern"))

	params := &sdk.CallToolParams{Name: prefix + "trigger-long-running-operation", Arguments: map[string]any{"duration": 1, "steps": 2}}
	params.SetProgressToken("of-" + era)
	result, err = session.CallTool(ctx, params)
	Expect(err).NotTo(HaveOccurred())
	Expect(result.IsError).To(BeFalse())
	Eventually(ctx, heard).WithTimeout(harness.CallTimeout).Should(Receive(BeNumerically(">", 0)), "progress of %s", prefix)
}

// told is what status tells of a server's upstreams.
func told(server *v1alpha1.MCPServer) []string {
	var out []string
	for _, u := range server.Status.Upstreams {
		out = append(out, u.Name+" "+u.State+" "+u.Reason+" "+u.Protocol)
	}
	return out
}
