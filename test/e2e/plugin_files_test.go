// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// clientConfig is what people have: a server by npx, by uvx, by docker, a
// remote one, and a remote one with a header. The images are of the test; the
// remote servers are those of NAMESPACE.
const clientConfig = `{
  // As Claude Desktop and Cursor have it.
  "mcpServers": {
    "Memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"], "env": {"MEMORY_FILE_PATH": "/tmp/memory.jsonl"}},
    "fetch": {"command": "uvx", "args": ["mcp-server-fetch==2025.4.7"], "env": {"PATH": "/", "FETCH_TOKEN": "swordfish-fetch"}},
    "git hub": {
      "command": "docker", "args": ["run", "-i", "--rm", "-e", "GITHUB_PERSONAL_ACCESS_TOKEN", "-v", "/home/me:/data", "IMAGE"],
      "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "ghp_swordfish0123456789"}
    },
    "remote": {"type": "http", "url": "http://remote.NAMESPACE.svc/mcp"},
    "vendor": {"url": "http://guarded-mcp.NAMESPACE.svc:8080/mcp", "headers": {"X-API-Key": "swordfish-vendor-0123456789abcdef"}},
  },
}`

var _ = Describe("kubectl mcp, with files", func() {
	It("imports a client's configuration with five servers, which become Ready", Label(slow), func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "import")
		By("what the remote servers of the configuration are here")
		deployment, service := harness.Workload("remote", harness.FakeMCPImage, 8080)
		guarded := harness.Server("guarded", 1)
		guarded.Spec.Auth = &v1alpha1.Auth{APIKeys: &v1alpha1.APIKeyAuth{SecretRef: v1alpha1.SecretRef{Name: "callers"}}}
		ns.Create(ctx, deployment, service, guarded, harness.Tool("hello", "guarded", harness.Says(`"hello"`)),
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "callers"}, StringData: map[string]string{"me": "swordfish-vendor-0123456789abcdef"}})

		By("the import")
		folder := GinkgoT().TempDir()
		config, secrets := filepath.Join(folder, "claude.json"), filepath.Join(folder, "secrets.yaml")
		text := strings.NewReplacer("NAMESPACE", ns.Name, "IMAGE", harness.BadChildImage).Replace(clientConfig)
		Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed())
		ran := ns.Plugin(ctx, "import", config, "--split-secrets", secrets, "--offline", "--npx-image", harness.NPMImage,
			"--uvx-image", harness.Registry()+"/example-uvx:dev", "--entrypoint", "git hub=/badchild")
		harness.Say("%s\n%s", ran.Stderr, ran.Stdout)
		Expect(ran.Code).To(BeZero(), ran.Stderr)
		Expect(ran.Stderr).To(And(ContainSubstring("-v /home/me:/data was left out"), ContainSubstring("5 servers, 3 values in Secrets")))
		Expect(ran.Stdout+ran.Stderr).NotTo(ContainSubstring("swordfish"), "no credential is in what goes to Git")

		By("applied as it is, but for where the stand-in for npx looks for packages")
		ns.Kubectl(ctx, "apply", "--filename", secrets)
		ns.KubectlIn(ctx, strings.Replace(ran.Stdout, "image: "+harness.NPMImage+"\n", "image: "+harness.NPMImage+"\n    workingDir: "+npmFolder+"\n", 1), "apply", "--filename", "-")
		for name, tools := range map[string]int{"memory": memoryTools, "fetch": -1, "git-hub": -1, "remote": 1, "vendor": 1} {
			server, took := ns.AwaitServerFor(ctx, name, harness.ImageTimeout, harness.Ready)
			harness.Say("%-8s Ready after %s, %d tools", name, took.Round(100*time.Millisecond), *server.Status.ToolCount)
			if tools >= 0 {
				Expect(server.Status.ToolCount).To(HaveValue(BeEquivalentTo(tools)), name)
			}
		}
		ns.Show(ctx, "Imported")
	}, SpecTimeout(6*time.Minute))

	It("writes what a server has, pins it, and shows its drift field by field", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "docs")
		folder := GinkgoT().TempDir()
		shop := harness.Server("shop", 2, harness.Probed(probeInterval, probeTimeout, probeThreshold))
		shop.Spec.ServerInfo = &v1alpha1.ServerInfo{Title: "The shop", Instructions: "Ask before you <buy>."}
		buy := harness.Tool("buy", "shop", harness.Says(`"bought"`), func(t *v1alpha1.MCPTool) {
			t.Spec.Description = "Buy something."
			t.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"count":{"type":"integer","maximum":10}}}`)}
		})
		ofShop := v1alpha1.RegistrationSpec{ServerRefs: []v1alpha1.ServerRef{{Name: "shop"}}}
		prices := &v1alpha1.MCPResource{ObjectMeta: harness.Meta("prices"), Spec: v1alpha1.MCPResourceSpec{RegistrationSpec: ofShop}}
		prices.Spec.URI, prices.Spec.Description, prices.Spec.Text = "shop://prices", "What things cost.", ptr.To("A pear: 1")
		order := &v1alpha1.MCPPrompt{ObjectMeta: harness.Meta("order"), Spec: v1alpha1.MCPPromptSpec{RegistrationSpec: ofShop}}
		order.Spec.Description, order.Spec.Arguments = "Order well.", []v1alpha1.PromptArgument{{Name: "what", Required: ptr.To(true)}}
		order.Spec.Messages = []v1alpha1.PromptMessage{{Role: v1alpha1.RoleUser, Content: v1alpha1.PromptContent{Type: v1alpha1.ContentText, Text: "Order."}}}
		ns.Create(ctx, shop, buy, harness.Tool("sell", "shop", harness.Says(`"sold"`)), prices, order)
		ns.AwaitServer(ctx, "shop", harness.ReadyTimeout, harness.Ready, harness.Is(v1alpha1.ConditionSynced, metav1.ConditionTrue))
		server := &v1alpha1.MCPServer{}
		Eventually(ctx, func(g Gomega) {
			ns.Get(ctx, "shop", server)
			g.Expect(server.Status.HealthyReplicas).To(HaveValue(BeEquivalentTo(2)))
		}).WithTimeout(harness.ReadyTimeout).WithPolling(harness.Poll).Should(Succeed(), "both replicas are proved")
		ran := func(code int, args ...string) harness.Ran {
			GinkgoHelper()
			out := ns.Plugin(ctx, args...)
			Expect(out.Code).To(Equal(code), "%v\n%s%s", args, out.Stdout, out.Stderr)
			return out
		}

		By("resources and prompts")
		Expect(ran(0, "resources", "shop").Stdout).To(Equal("URI             NAME     TYPE   DESCRIPTION\nshop://prices   prices   -      What things cost.\n"))
		Expect(ran(0, "prompts", "shop", "--all-pods").Stdout).To(Equal("NAME    REPLICAS   ARGUMENTS   DESCRIPTION\norder   2/2        what        Order well.\n\nAll 2 replicas list the same.\n"))

		By("docs")
		page := ran(0, "docs", "shop").Stdout
		harness.Say("%s", page)
		Expect(page).To(And(HavePrefix("# The shop\n"), ContainSubstring("### `buy`\n\nBuy something."), ContainSubstring("| `count` | integer | no | At most 10. |"),
			ContainSubstring(`Ask before you \<buy\>.`), ContainSubstring("### `sell`")))
		catalog := ran(0, "docs", "shop", "--output", "json").Stdout
		for _, pod := range ns.Pods(ctx, "shop") {
			Expect(page + catalog).NotTo(ContainSubstring(pod.Name))
			Expect(ran(0, "docs", "shop", "--pod", pod.Name).Stdout).To(Equal(page), "of every replica the page is the same")
			Expect(ran(0, "docs", "shop", "--output=json", "--pod", pod.Name).Stdout).To(Equal(catalog))
		}
		listed := &manifest.Manifest{}
		Expect(json.Unmarshal([]byte(catalog), listed)).To(Succeed())
		Expect(listed.Tools).To(HaveLen(len(server.Status.Tools)))
		for i, tool := range server.Status.Tools {
			Expect(listed.Tools[i].Digest).To(Equal(tool.Digest), "the digest of %s is that of status", tool.Name)
		}

		By("contract: what is printed is met as soon as it is applied")
		definitions, patch := filepath.Join(folder, "shop.json"), filepath.Join(folder, "contract.yaml")
		pinned := ran(0, "contract", "shop", "--definitions", definitions).Stdout
		Expect(os.WriteFile(patch, []byte(pinned), 0o600)).To(Succeed())
		ns.Kubectl(ctx, "patch", "mcpserver", "shop", "--type", "merge", "--patch-file", patch)
		ns.AwaitServer(ctx, "shop", harness.StatusTimeout, harness.Is(v1alpha1.ConditionContractMet, metav1.ConditionTrue, v1alpha1.ReasonContractMet))
		ran(0, "contract", "shop", "--diff", definitions)
		ran(0, "contract", "shop", "--diff", patch)

		By("contract --diff: what changed")
		ns.Update(ctx, "buy", buy, func() {
			buy.Spec.Description = "Buy anything."
			buy.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(`{"type":"object","properties":{"count":{"type":"integer","maximum":1000}}}`)}
		})
		ns.AwaitServer(ctx, "shop", harness.ServedTimeout, harness.Is(v1alpha1.ConditionContractMet, metav1.ConditionFalse, v1alpha1.ReasonDrifted),
			harness.Is(v1alpha1.ConditionSynced, metav1.ConditionTrue))
		drift := ran(1, "contract", "shop", "--diff", definitions)
		harness.Say("%s%s", drift.Stdout, drift.Stderr)
		Expect(drift.Stdout).To(And(HavePrefix("Tool buy differs in description, inputSchema.\n"),
			ContainSubstring("  - Buy something.\n  + Buy anything.\n"), ContainSubstring(`  -       "maximum": 10,`), ContainSubstring(`  +       "maximum": 1000,`)))
		Expect(ran(1, "contract", "shop", "--diff", patch).Stdout).To(HavePrefix("Tool buy differs in description, inputSchema.\n"))
		ran(0, "contract", "shop", "--diff", definitions, "--tool", "sell")
		ran(2, "contract", "nobody", "--diff", definitions)
	}, SpecTimeout(4*time.Minute))
})
