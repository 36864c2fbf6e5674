// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/espalier-dev/espalier/test/e2e/harness"
)

var _ = Describe("A newcomer", Label(slow, disruptive), Serial, func() {
	It("comes from docs/install.md to a Ready server in five commands", func(ctx SpecContext) {
		found := cluster.Installed(ctx)
		found.Replace(ctx)
		DeferCleanup(func(ctx context.Context) { uninstallChart(ctx) })
		demo := cluster.Adopt("espalier-demo")

		commands := newcomersCommands()
		Expect(len(commands)).To(BeNumerically("<=", 5))
		start := time.Now()
		for _, command := range commands {
			if strings.HasPrefix(command, "make images ") {
				harness.Say("$ %s\n(done: the tests' images are in the cluster)", command)
				continue
			}
			// The tests' images lie elsewhere, and each has a tag of its own.
			theirs := "--set image.registry=registry.example.com/espalier --set image.tag=v0"
			command = strings.Replace(command, theirs, strings.Join(found.ChartValues(), " "), 1)
			harness.Say("$ %s\n%s", command, cluster.Shell(ctx, command))
		}
		harness.Say("a Ready server after %s", time.Since(start).Round(time.Second))
		demo.AwaitServer(ctx, "hello", harness.StatusTimeout, harness.Ready)
		answer, err := demo.Peers(ctx, "hello")[0].Call(ctx, "greet", map[string]any{"name": "Ada"})
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Text()).To(ContainSubstring("Ada"))
	}, SpecTimeout(6*time.Minute))

	It("who installed by kustomize goes on with Helm, with nothing removed in between", func(ctx SpecContext) {
		found := cluster.Installed(ctx)
		found.Restore()
		DeferCleanup(func(ctx context.Context) { uninstallChart(ctx) })
		ns := cluster.Namespace(ctx, "moves")
		ns.Create(ctx, harness.Server("stays", 1), harness.Tool("ping", "stays", harness.Says(`"pong"`)))
		ns.AwaitServer(ctx, "stays", harness.ReadyTimeout, harness.Ready)
		pods := harness.Identity(ns.Pods(ctx, "stays"))
		before := &appsv1.Deployment{}
		Expect(cluster.Client.Get(ctx, operatorKey(), before)).To(Succeed())

		cluster.Helm(ctx, append([]string{"upgrade", "--install", "espalier", harness.Chart, "--take-ownership", "--force-conflicts", "--wait", helmWait}, found.ChartValues()...)...)
		cluster.AwaitOperator(ctx)
		after := &appsv1.Deployment{}
		Expect(cluster.Client.Get(ctx, operatorKey(), after)).To(Succeed())
		Expect(after.UID).To(Equal(before.UID), "the Deployment is the same")
		Expect(after.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "Helm"))
		Expect(cluster.OperatorPods(ctx)).To(HaveLen(2))

		cluster.Helm(ctx, "upgrade", "espalier", harness.Chart, "--reset-then-reuse-values", "--force-conflicts", "--wait", helmWait, "--set=manager.replicas=1")
		cluster.AwaitOperator(ctx)
		Expect(cluster.OperatorPods(ctx)).To(HaveLen(1))
		ns.AwaitServer(ctx, "stays", harness.ReadyTimeout, harness.Ready)
		Expect(harness.Identity(ns.Pods(ctx, "stays"))).To(Equal(pods), "pods of the server")
	}, SpecTimeout(6*time.Minute))
})

// newcomersCommands are those of docs/install.md.
func newcomersCommands() []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	Expect(err).NotTo(HaveOccurred())
	_, after, ok := strings.Cut(string(text), "<!-- newcomer: a test runs these -->\n\n")
	Expect(ok).To(BeTrue(), "docs/install.md marks the newcomer's commands")
	block, _, _ := strings.Cut(after, "\n\n")
	var commands []string
	for _, line := range strings.Split(block, "\n") {
		command, ok := strings.CutPrefix(line, "    ")
		Expect(ok).To(BeTrue(), "a line of code: %q", line)
		commands = append(commands, command)
	}
	return commands
}
