// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// built is the plugin, built once for all specs of the process.
var built struct {
	sync.Once
	path string
	err  error
}

// PluginBinary gives the path of kubectl-mcp, built from this tree, or the one
// that KUBECTL_MCP names.
func PluginBinary() string {
	GinkgoHelper()
	built.Do(func() {
		if built.path = os.Getenv("KUBECTL_MCP"); built.path != "" {
			return
		}
		var folder string
		if folder, built.err = os.MkdirTemp("", "kubectl-mcp-"); built.err != nil {
			return
		}
		built.path = filepath.Join(folder, "kubectl-mcp")
		build := exec.Command("go", "build", "-o", built.path, "github.com/espalier-dev/espalier/cmd/kubectl-mcp")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = errors.New(string(out))
		}
	})
	Expect(built.err).NotTo(HaveOccurred())
	return built.path
}

// Ran is what a run of the plugin gave.
type Ran struct {
	Stdout, Stderr string
	// Code is the exit code.
	Code int
}

// PluginCommand is kubectl-mcp in the namespace, not started yet. It ends with
// ctx.
func (n *Namespace) PluginCommand(ctx context.Context, args ...string) *exec.Cmd {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, PluginBinary(), append([]string{"--kubeconfig", n.Kubeconfig, "--namespace", n.Name}, args...)...)
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	return cmd
}

// Plugin runs kubectl-mcp in the namespace, whatever its exit code.
func (n *Namespace) Plugin(ctx context.Context, args ...string) Ran {
	GinkgoHelper()
	return n.PluginIn(ctx, "", args...)
}

// PluginIn runs kubectl-mcp with text on its standard input.
func (n *Namespace) PluginIn(ctx context.Context, stdin string, args ...string) Ran {
	GinkgoHelper()
	cmd := n.PluginCommand(ctx, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		Expect(err).NotTo(HaveOccurred())
	}
	return Ran{Stdout: out.String(), Stderr: errOut.String(), Code: cmd.ProcessState.ExitCode()}
}
