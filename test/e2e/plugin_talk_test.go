// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpserver/serving/servingtest"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// typed gives a tool an inputSchema.
func typed(schema string) func(*v1alpha1.MCPTool) {
	return func(t *v1alpha1.MCPTool) { t.Spec.InputSchema = &v1alpha1.JSON{Raw: []byte(schema)} }
}

// sum is a tool with arguments of several types.
func sum(server string) *v1alpha1.MCPTool {
	return harness.Tool("sum", server, typed(`{"type":"object","required":["a"],"additionalProperties":false,"properties":{
	  "a":{"type":"integer","description":"The first number"},"b":{"type":"integer"},"unit":{"enum":["m","km"]}}}`), func(t *v1alpha1.MCPTool) {
		t.Spec.Description = "Adds two numbers"
		t.Spec.Expression = &v1alpha1.Result{
			Structured: `{"sum": args.a + (has(args.b) ? args.b : 0)}`, IsError: `args.a < 0`,
		}
	})
}

var _ = Describe("kubectl mcp", func() {
	It("lists, calls and probes servers through the API server: over TLS, with a caller's key, each replica", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "talk")
		a, err := servingtest.NewAuthority()
		Expect(err).NotTo(HaveOccurred())
		certified(ctx, ns, "web-tls", a, a, "sealed-mcp."+ns.Name+".svc", time.Hour)
		keys := &corev1.Secret{ObjectMeta: harness.Meta("callers"), Data: map[string][]byte{"alice": []byte("a-key-that-nobody-guesses-0123456789")}}
		ns.Create(ctx, keys,
			harness.Server("sealed", 2, func(s *v1alpha1.MCPServer) {
				s.Spec.TLS = &v1alpha1.ServerTLS{SecretRef: v1alpha1.CertificateRef{Name: "web-tls"}}
				s.Spec.Auth = &v1alpha1.Auth{APIKeys: &v1alpha1.APIKeyAuth{SecretRef: v1alpha1.SecretRef{Name: "callers"}}}
			}), sum("sealed"),
			harness.Container("fake", 2, harness.FakeMCPImage))
		ns.AwaitServer(ctx, "sealed", harness.ReadyTimeout, harness.Ready)
		ns.AwaitServer(ctx, "fake", harness.ReadyTimeout, harness.Ready)
		token := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(token, append(keys.Data["alice"], '\n'), 0o600)).To(Succeed())
		run := func(code int, args ...string) harness.Ran {
			GinkgoHelper()
			ran := ns.Plugin(ctx, args...)
			harness.Say("$ kubectl mcp %s\n%s%s", strings.Join(args, " "), ran.Stdout, ran.Stderr)
			Expect(ran.Code).To(Equal(code), ran.Stderr)
			Expect(ran.Stdout + ran.Stderr).NotTo(ContainSubstring("nobody-guesses"))
			return ran
		}

		By("Without a credential it says what to give")
		Expect(run(2, "tools", "sealed").Stderr).To(And(ContainSubstring("wants a credential"), ContainSubstring("--token-file")))

		By("Each replica lists the same")
		ran := run(0, "tools", "sealed", "--token-file", token, "--all-pods")
		Expect(ran.Stdout).To(Equal("NAME   REPLICAS   ARGUMENTS      DESCRIPTION\nsum    2/2        a [b] [unit]   Adds two numbers\n\nAll 2 replicas list the same.\n"))

		By("Calls are typed, and refused with the argument's name")
		Expect(run(0, "call", "sealed", "sum", "a=2", "b=3", "--token-file", token, "-o", "json").Stdout).To(MatchJSON(`{"sum": 5}`))
		pod := ns.Pods(ctx, "sealed")[1].Name
		Expect(run(0, "call", "sealed", "sum", "a=2", "--pod", pod, "--token-file", token).Stdout).To(MatchJSON(`{"sum": 2}`))
		Expect(run(2, "call", "sealed", "sum", "a=two", "--token-file", token).Stderr).To(ContainSubstring(`argument "a" is to be an integer, and "two" is not`))
		Expect(run(2, "call", "sealed", "sum", "b=1", "--token-file", token).Stderr).To(ContainSubstring(`argument "a" is missing`))
		run(1, "call", "sealed", "sum", "a=-1", "--token-file", token)

		By("Completion asks the server")
		Expect(run(0, "__complete", "call", "sealed", "sum", "--token-file", token, "").Stdout).To(ContainSubstring("a=\tan integer. The first number"))
		Expect(run(0, "__complete", "tools", "").Stdout).To(And(ContainSubstring("sealed"), ContainSubstring("fake")))

		path := GinkgoT().TempDir()
		script, err := filepath.Abs("../../cmd/kubectl-mcp/kubectl_complete-mcp")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.Symlink(harness.PluginBinary(), filepath.Join(path, "kubectl-mcp"))).To(Succeed())
		Expect(os.Symlink(script, filepath.Join(path, "kubectl_complete-mcp"))).To(Succeed())
		// kubectl takes no flags before a plugin's name.
		kubectl := exec.CommandContext(ctx, cmp.Or(os.Getenv("KUBECTL"), "kubectl"), "__complete", "mcp", "call", "-n", ns.Name, "")
		kubectl.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "KUBECONFIG="+ns.Kubeconfig)
		offered, err := kubectl.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(offered))
		Expect(string(offered)).To(And(ContainSubstring("sealed"), ContainSubstring("fake")))

		By("The probe sees each replica")
		Expect(run(1, "probe", "sealed").Stdout).To(ContainSubstring("AuthRequired"))
		var seen []struct{ Outcome, Pod, URL, Era string }
		Expect(json.Unmarshal([]byte(run(0, "probe", "sealed", "--token-file", token, "--all-pods", "-o", "json").Stdout), &seen)).To(Succeed())
		Expect(seen).To(HaveLen(2))
		for i, pod := range ns.Pods(ctx, "sealed") {
			Expect(seen[i].Outcome).To(Equal("Proved"))
			Expect(seen[i].URL).To(Equal("https://sealed-mcp." + ns.Name + ".svc:8080/mcp"))
			Expect([]string{seen[0].Pod, seen[1].Pod}).To(ContainElement(pod.Name))
		}

		By("A replica that lists something else is named, and so is one that answers nonsense")
		pods := ns.Pods(ctx, "fake")
		Expect(harness.SetTools(ctx, &pods[0], 2)).To(Succeed())
		Expect(run(0, "tools", "fake", "--all-pods").Stdout).To(ContainSubstring("tool-2 is not listed by " + pods[1].Name))
		harness.SetMode(ctx, &pods[0], "garbage")
		Expect(run(1, "probe", "fake", "--pod", pods[0].Name).Stdout).To(And(ContainSubstring("NotMCP"), ContainSubstring("garbage"), ContainSubstring("kubectl logs "+pods[0].Name)))

		By("A server without pods")
		ns.Kubectl(ctx, "scale", "mcpserver", "fake", "--replicas=0")
		Expect(run(2, "tools", "fake").Stderr).To(ContainSubstring("scaled to zero"))
		Expect(run(2, "tools", "none").Stderr).To(ContainSubstring(`there is no MCPServer "none"`))
	}, SpecTimeout(6*time.Minute))
})
