// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"

	"github.com/espalier-dev/espalier/hack/cluster/internal/proc"
)

const (
	containerd = "containerd"
	kubelet    = "kubelet"
	kubeProxy  = "kube-proxy"
	kubeRouter = "kube-router"
)

func (c *Cluster) containerd(bins binaries) proc.Command {
	command := c.command(containerd, bins.program(containerdSet, "containerd"),
		"--config="+c.path("containerd.toml"))
	// containerd looks for its shim on the PATH.
	command.Env = []string{"PATH=" + bins[containerdSet.Name] + ":" + os.Getenv("PATH")}
	return command
}

func (c *Cluster) kubelet(bins binaries) proc.Command {
	return c.command(kubelet, bins.program(nodeSet, "kubelet"),
		"--config="+c.path("kubelet.yaml"),
		"--kubeconfig="+c.path("kubelet.kubeconfig"),
		"--root-dir="+c.path("kubelet"),
		"--cert-dir="+c.path("kubelet", "pki"),
		"--hostname-override="+nodeName,
		"--node-ip="+nodeIP,
	)
}

func (c *Cluster) kubeProxy(bins binaries) proc.Command {
	return c.command(kubeProxy, bins.program(nodeSet, "kube-proxy"),
		"--kubeconfig="+c.path("kube-proxy.kubeconfig"),
		"--hostname-override="+nodeName,
		"--proxy-mode=iptables",
		"--cluster-cidr="+podCIDR,
		"--metrics-bind-address=127.0.0.1:10249",
		"--healthz-bind-address=127.0.0.1:10256",
		// The machine may forbid these settings, and the defaults serve.
		"--conntrack-max-per-core=0",
		"--conntrack-tcp-timeout-established=0s",
		"--conntrack-tcp-timeout-close-wait=0s",
		"--oom-score-adj=0",
	)
}
