// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// repository is the root of the checkout, from a test's folder.
var repository = filepath.Join("..", "..")

// Installation is the operator as hack/lib/install.sh installed it.
type Installation struct {
	cluster *Cluster
	// Manager and Server are the images.
	Manager, Server string
}

// Installed is the installation that the tests found.
func (c *Cluster) Installed(ctx context.Context) *Installation {
	GinkgoHelper()
	var d appsv1.Deployment
	Expect(c.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorDeployment}, &d)).To(Succeed())
	container := d.Spec.Template.Spec.Containers[0]
	in := &Installation{cluster: c, Manager: container.Image}
	for _, arg := range container.Args {
		if image, ok := strings.CutPrefix(arg, "--server-image="); ok {
			in.Server = image
		}
	}
	Expect(in.Server).NotTo(BeEmpty(), "--server-image in %q", container.Args)
	return in
}

// Replace removes the operator and the CRDs, and puts both back when the spec
// ends. It skips the spec where that would delete servers of others.
func (in *Installation) Replace(ctx context.Context) {
	GinkgoHelper()
	var servers v1alpha1.MCPServerList
	Expect(in.cluster.Client.List(ctx, &servers)).To(Succeed())
	if len(servers.Items) > 0 {
		Skip(fmt.Sprintf("the cluster holds %d MCPServers that are not the tests': their CRD is not removed", len(servers.Items)))
	}
	in.Restore()
	in.script(ctx, "uninstall_operator")
}

// Restore installs the operator again when the spec ends.
func (in *Installation) Restore() {
	DeferCleanup(func(ctx context.Context) {
		in.script(ctx, "install_operator")
		in.cluster.AwaitOperator(ctx)
	})
}

// script runs a function of hack/lib/install.sh.
func (in *Installation) script(ctx context.Context, function string) {
	GinkgoHelper()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", ". hack/lib/install.sh; "+function)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "ROOT=.", "KUBECONFIG="+in.cluster.Kubeconfig, "MANAGER_IMAGE="+in.Manager, "SERVER_IMAGE="+in.Server)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", function, out)
}

// WithManager is the installation with another image of the operator.
func (in *Installation) WithManager(image string) *Installation {
	return &Installation{cluster: in.cluster, Manager: image, Server: in.Server}
}

// ChartValues are the flags that make the chart install the same images.
func (in *Installation) ChartValues() []string {
	registry, manager, managerTag := splitImage(in.Manager)
	_, server, serverTag := splitImage(in.Server)
	return []string{
		"--set=image.registry=" + registry,
		"--set=manager.image.repository=" + manager, "--set-string=manager.image.tag=" + managerTag,
		"--set=servers.image.repository=" + server, "--set-string=servers.image.tag=" + serverTag,
	}
}

func splitImage(image string) (registry, name, tag string) {
	slash := strings.LastIndexByte(image, '/')
	name, tag, _ = strings.Cut(image[slash+1:], ":")
	return image[:slash], name, tag
}

// Chart is where the Helm chart lies.
var Chart = filepath.Join(repository, "charts", "espalier")

// Helm runs Helm in the operator's namespace.
func (c *Cluster) Helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	program := os.Getenv("HELM")
	Expect(program).NotTo(BeEmpty(), "HELM names no program: run 'make test-e2e'")
	cmd := exec.CommandContext(ctx, program, append([]string{"--kubeconfig", c.Kubeconfig, "--namespace", OperatorNamespace}, args...)...)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "helm %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// Shell runs a command in the root of the repository as a person would, with
// the cluster's kubectl and Helm.
func (c *Cluster) Shell(ctx context.Context, command string) string {
	GinkgoHelper()
	path := os.Getenv("PATH")
	for _, variable := range []string{"KUBECTL", "HELM"} {
		if program := os.Getenv(variable); strings.ContainsRune(program, '/') {
			path = filepath.Dir(program) + ":" + path
		}
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", command)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "PATH="+path)
	out, err := cmd.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s: %s", command, out)
	return string(out)
}
