// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// kubectl runs kubectl against the cluster and returns all that it printed.
func (c *Cluster) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	program := os.Getenv("KUBECTL")
	if program == "" {
		program = "kubectl"
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}

// Kubectl runs kubectl in the namespace.
func (n *Namespace) Kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	return n.KubectlIn(ctx, "", args...)
}

// KubectlIn runs kubectl in the namespace with text on its standard input.
func (n *Namespace) KubectlIn(ctx context.Context, stdin string, args ...string) string {
	GinkgoHelper()
	out, err := n.kubectl(ctx, stdin, append([]string{"--namespace", n.Name}, args...)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// Show prints the tables of the namespace's servers and tools as a person sees them.
func (n *Namespace) Show(ctx context.Context, title string) {
	GinkgoHelper()
	out := n.Kubectl(ctx, "get", "mcpservers,mcptools", "--output", "wide")
	Say("\n--- %s\n%s", title, out)
}

// Say prints a line. It is seen when the spec passes, too, since hack/e2e.sh
// asks for that (-ginkgo.v).
func Say(format string, args ...any) {
	fmt.Fprintf(GinkgoWriter, format+"\n", args...)
}
