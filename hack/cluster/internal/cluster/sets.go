// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/espalier-dev/espalier/hack/cluster/internal/build"

const (
	kubernetesVersion = "v1.37.2"
	containerdVersion = "v2.2.4"
	coreDNSVersion    = "v1.15.0"
	metricsVersion    = "v0.9.0"
)

const kubernetesCmd = "k8s.io/kubernetes/cmd/"

// assetsSet is what tests against a bare API server need; nodeSet is the rest of
// Kubernetes. Both are built from one module and share the Go build cache.
var (
	assetsSet = build.Set{
		Name: "kubernetes-assets", Dir: "tools/kubernetes", LDFlags: kubernetesLDFlags(),
		Packages: []string{
			"go.etcd.io/etcd/server/v3", kubernetesCmd + "kube-apiserver",
			kubernetesCmd + "kube-controller-manager", kubernetesCmd + "kubectl",
		},
		Rename: map[string]string{"server": "etcd"},
	}
	nodeSet = build.Set{
		Name: "kubernetes-node", Dir: "tools/kubernetes", LDFlags: kubernetesLDFlags(),
		Packages: []string{kubernetesCmd + "kube-proxy", kubernetesCmd + "kube-scheduler", kubernetesCmd + "kubelet"},
	}
	containerdSet = build.Set{
		Name: "containerd", Dir: "tools/containerd",
		LDFlags: []string{"-X", "github.com/containerd/containerd/v2/version.Version=" + containerdVersion},
		Packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
			"github.com/containernetworking/plugins/plugins/main/bridge",
			"github.com/containernetworking/plugins/plugins/main/loopback",
			"github.com/containernetworking/plugins/plugins/meta/portmap",
		},
	}
	coreDNSSet = build.Set{Name: "coredns", Dir: "tools/coredns", Packages: []string{"."}, Sources: []string{"*.go"}}
	routerSet  = build.Set{
		Name: "kube-router", Dir: "tools/kube-router",
		Packages: []string{"github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"},
	}
	metricsSet = build.Set{
		Name: "metrics-server", Dir: "tools/metrics-server",
		Packages: []string{"sigs.k8s.io/metrics-server/cmd/metrics-server"},
	}
	pauseSet  = build.Set{Name: "pause", Dir: ".", Packages: []string{"./pause"}, Sources: []string{"pause/*.go"}}
	imagesSet = build.Set{Name: "images", Dir: "../images", Packages: []string{"."}, Sources: []string{"*.go", "internal/*/*.go"}}
)

// sets are those that every up needs; those of kube-router and metrics-server are built
// when they are first asked for.
var sets = []build.Set{assetsSet, nodeSet, containerdSet, coreDNSSet, pauseSet, imagesSet}

// kubernetesLDFlags sets the version that clients are told; a build from a module knows none.
func kubernetesLDFlags() []string {
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X", pkg+".gitVersion="+kubernetesVersion, "-X", pkg+".gitMajor=1", "-X", pkg+".gitMinor=37",
			"-X", pkg+".gitTreeState=clean")
	}
	return flags
}
