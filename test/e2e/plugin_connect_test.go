// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// desk is a client on this machine that started "kubectl mcp connect".
type desk struct {
	*sdk.ClientSession
	command *exec.Cmd
	log     *said
	changed chan struct{}
}

// said is what a process wrote to standard error.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// startDesk lets the official SDK start the command as its server.
func startDesk(ctx context.Context, ns *harness.Namespace, version string, args ...string) (*desk, error) {
	GinkgoHelper()
	d := &desk{command: ns.PluginCommand(ctx, append([]string{"connect", "--verbose"}, args...)...), log: &said{}, changed: make(chan struct{}, 100)}
	d.command.Stderr = io.MultiWriter(d.log, GinkgoWriter)
	client := sdk.NewClient(&sdk.Implementation{Name: "espalier-e2e", Version: "0"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { d.changed <- struct{}{} },
	})
	var err error
	d.ClientSession, err = client.Connect(ctx, &sdk.CommandTransport{Command: d.command, TerminateDuration: harness.CallTimeout}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	return d, err
}

func (d *desk) names(ctx context.Context) (names []string) {
	GinkgoHelper()
	for tool, err := range d.Tools(ctx, nil) {
		Expect(err).NotTo(HaveOccurred(), d.log.String())
		names = append(names, tool.Name)
	}
	return names
}

func (d *desk) say(ctx context.Context, word string) string {
	GinkgoHelper()
	result, err := d.CallTool(ctx, &sdk.CallToolParams{Name: "echo", Arguments: map[string]any{"word": word}})
	Expect(err).NotTo(HaveOccurred(), d.log.String())
	return result.Content[0].(*sdk.TextContent).Text
}

// inspector runs the MCP inspector's command line with a configuration that
// "kubectl mcp config" printed, and reads its answer.
func inspector(ctx context.Context, ns *harness.Namespace, server, era string, answer any, args ...string) {
	GinkgoHelper()
	node, program := os.Getenv("E2E_NODE"), os.Getenv("E2E_INSPECTOR")
	printed := ns.Plugin(ctx, "config", server, "--client", "generic", "--command", harness.PluginBinary())
	Expect(printed.Code).To(BeZero(), printed.Stderr)
	var config map[string]map[string]map[string]any
	Expect(json.Unmarshal([]byte(printed.Stdout), &config)).To(Succeed())
	config["mcpServers"][server]["protocolEra"] = era
	raw, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	home := GinkgoT().TempDir()
	file := filepath.Join(home, "mcp.json")
	Expect(os.WriteFile(file, raw, 0o600)).To(Succeed())
	cmd := exec.CommandContext(ctx, node, append([]string{program, "--cli", "--config", file, "--server", server, "--format", "json"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+home, "MCP_INSPECTOR_SECRET_STORE=memory")
	cmd.Stderr = GinkgoWriter
	output, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "the inspector wrote %s", output)
	Expect(json.Unmarshal(output, answer)).To(Succeed(), "the inspector wrote %s", output)
}

var _ = Describe("kubectl mcp connect", func() {
	It("stands for a server in the cluster, in both eras, and outlives its pods", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "connect")
		ns.Create(ctx, harness.Server("weather", 1), harness.Tool("echo", "weather", harness.Says("args.word")))
		ns.AwaitServer(ctx, "weather", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)

		By("the official SDK shakes hands, lists and calls")
		desks := map[string]*desk{}
		for era, version := range harness.Eras {
			d, err := startDesk(ctx, ns, version, "weather")
			Expect(err).NotTo(HaveOccurred(), "%s: %s", era, d.log)
			desks[era] = d
			Expect(d.InitializeResult().ProtocolVersion).To(Equal(version))
			Expect(d.InitializeResult().ServerInfo.Name).To(Equal("weather"), "the identity is the server's")
			Expect(d.names(ctx)).To(Equal([]string{"echo"}))
			Expect(d.say(ctx, era)).To(Equal(era))
		}

		By("a change of the catalog is told")
		ns.Create(ctx, harness.Tool("second", "weather", harness.Says(`"2"`)))
		for era, d := range desks {
			Eventually(ctx, d.changed).WithTimeout(harness.ServedTimeout).Should(Receive(), era)
			Eventually(ctx, d.names).WithArguments(ctx).WithTimeout(harness.ServedTimeout).WithPolling(harness.Poll).Should(ContainElement("second"), era)
		}

		By("the pod is replaced: what is asked meanwhile waits for the new one, and the client is told to read again")
		for _, d := range desks {
			for len(d.changed) > 0 {
				<-d.changed
			}
		}
		old := ns.Pods(ctx, "weather")
		Expect(old).To(HaveLen(1))
		ns.Delete(ctx, &old[0])
		for era, d := range desks {
			Eventually(ctx, d.changed).WithTimeout(harness.ReadyTimeout).Should(Receive(), era)
			Expect(d.names(ctx)).To(ConsistOf("echo", "second"), era)
			Expect(d.say(ctx, "again "+era)).To(Equal("again "+era), era)
		}
		Eventually(ctx, func(g Gomega) {
			pods := ns.Pods(ctx, "weather")
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].UID).NotTo(Equal(old[0].UID))
		}).WithTimeout(harness.ReadyTimeout).WithPolling(harness.Poll).Should(Succeed())

		By("the client's end is that of the command, in good order")
		for era, d := range desks {
			Expect(d.Close()).To(Succeed(), "%s: %s", era, d.log)
			Expect(d.command.ProcessState.ExitCode()).To(BeZero(), era)
		}
	}, SpecTimeout(5*time.Minute))

	It("is what the MCP inspector uses by the configuration that kubectl mcp config prints", func(ctx SpecContext) {
		if os.Getenv("E2E_INSPECTOR") == "" {
			Skip("there is no npm on this machine")
		}
		ns := cluster.Namespace(ctx, "connect")
		ns.Create(ctx, harness.Server("weather", 2), harness.Tool("echo", "weather", harness.Says("args.word")))
		ns.AwaitServer(ctx, "weather", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)
		for era := range harness.Eras {
			var list struct {
				Result struct{ Tools []struct{ Name string } }
			}
			inspector(ctx, ns, "weather", era, &list, "--method", "tools/list")
			Expect(list.Result.Tools).To(HaveLen(1), era)
			var called struct {
				Result struct{ Content []struct{ Text string } }
			}
			inspector(ctx, ns, "weather", era, &called, "--method", "tools/call", "--tool-name", "echo", "--tool-arg", "word="+era)
			Expect(called.Result.Content).To(HaveLen(1), era)
			Expect(called.Result.Content[0].Text).To(Equal(era))
		}
	}, SpecTimeout(3*time.Minute))

	It("speaks what the server speaks", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "connect")
		versions := map[v1alpha1.TransportType]string{
			v1alpha1.TransportSSE: "2025-11-25", v1alpha1.TransportWebSocket: "2026-07-28",
		}
		for transport := range versions {
			name := strings.ToLower(string(transport))
			ns.Create(ctx, harness.Server(name, 1, over(transport)), harness.Tool("echo-"+name, name, harness.Says("args.word"), func(t *v1alpha1.MCPTool) {
				t.Spec.Name = "echo"
			}))
		}
		for transport, version := range versions {
			name := strings.ToLower(string(transport))
			ns.AwaitServer(ctx, name, harness.ReadyTimeout, harness.Ready)
			ns.AwaitTool(ctx, "echo-"+name, harness.ServedTimeout, harness.Served)
			d, err := startDesk(ctx, ns, version, name)
			Expect(err).NotTo(HaveOccurred(), "%s: %s", name, d.log)
			Expect(d.say(ctx, name)).To(Equal(name))
			pods := ns.Pods(ctx, name)
			ns.Delete(ctx, &pods[0])
			Eventually(ctx, d.changed).WithTimeout(harness.ReadyTimeout).Should(Receive(), name)
			Expect(d.names(ctx)).To(Equal([]string{"echo"}), name)
			Expect(d.say(ctx, "again")).To(Equal("again"), name)
			Expect(d.Close()).To(Succeed(), "%s: %s", name, d.log)
		}
	}, SpecTimeout(5*time.Minute))

	It("shows the credential that it is given, and says what is missing", func(ctx SpecContext) {
		ns := cluster.Namespace(ctx, "connect")
		const key = "k-4f1d2b7c9a"
		ns.Create(ctx,
			&corev1.Secret{ObjectMeta: harness.Meta("keys"), StringData: map[string]string{"desk": key}},
			harness.Server("closed", 1, func(s *v1alpha1.MCPServer) {
				s.Spec.Auth = &v1alpha1.Auth{APIKeys: &v1alpha1.APIKeyAuth{SecretRef: v1alpha1.SecretRef{Name: "keys"}}}
			}),
			harness.Tool("echo", "closed", harness.Says("args.word")))
		ns.AwaitServer(ctx, "closed", harness.ReadyTimeout, harness.Ready)
		ns.AwaitTool(ctx, "echo", harness.ServedTimeout, harness.Served)

		d, err := startDesk(ctx, ns, "2025-11-25", "closed")
		Expect(err).To(HaveOccurred())
		Expect(d.log.String()).To(ContainSubstring("wants a credential"))
		file := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(file, []byte(key+"\n"), 0o600)).To(Succeed())
		for _, args := range [][]string{{"--token-file", file}, {"--header", "X-API-Key: " + key}} {
			for era, version := range harness.Eras {
				d, err := startDesk(ctx, ns, version, append(args, "closed")...)
				Expect(err).NotTo(HaveOccurred(), "%s: %s", era, d.log)
				Expect(d.say(ctx, era)).To(Equal(era))
				Expect(d.Close()).To(Succeed())
				Expect(d.log.String()).NotTo(ContainSubstring(key))
			}
		}
		printed := ns.Plugin(ctx, "config", "closed", "--client", "claude-desktop")
		Expect(printed.Code).To(BeZero(), printed.Stderr)
		Expect(printed.Stderr).To(ContainSubstring("X-API-Key"))
		Expect(printed.Stdout + printed.Stderr).NotTo(ContainSubstring(key))
		Expect(ns.Plugin(ctx, "connect", "nothing").Code).To(Equal(2))
	}, SpecTimeout(3*time.Minute))
})
