// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a whole Kubernetes cluster as processes of one machine: control
// plane, one node and its DNS, without Docker and without pulling an image.
package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"github.com/espalier-dev/espalier/hack/cluster/internal/build"
	"github.com/espalier-dev/espalier/hack/cluster/internal/host"
)

// The cluster's fixed names and addresses.
const (
	nodeName     = "node1"
	nodeIP       = "10.246.0.1"
	podCIDR      = "10.244.0.0/16"
	nodePodCIDR  = "10.244.0.0/24"
	serviceCIDR  = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
	dnsServiceIP = "10.96.0.10"
	domain       = "cluster.local"
	bridge       = "cni0"
	cniNetwork   = "espalier"
	apiServerURL = "https://" + nodeIP + ":6443"
	etcdURL      = "http://127.0.0.1:23790"
	etcdPeerURL  = "http://127.0.0.1:23800"
)

// Cluster is the cluster in one state folder.
type Cluster struct {
	// Dir holds everything that the cluster writes.
	Dir string
	// Cache holds its programs and images.
	Cache *build.Cache
	// NetworkPolicies asks up for kube-router, which enforces them.
	NetworkPolicies bool
	// Metrics asks up for metrics-server.
	Metrics bool
}

// New finds the cluster's folders. Root is the folder of hack/cluster.
func New(root string) (*Cluster, error) {
	dir := os.Getenv("ESPALIER_CLUSTER_DIR")
	if dir == "" {
		dir = "/var/lib/espalier-cluster"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	cache, err := build.DefaultDir()
	if err != nil {
		return nil, err
	}
	return &Cluster{Dir: dir, Cache: &build.Cache{Dir: cache, Root: root, Log: logf}}, nil
}

// Kubeconfig is the administrator's.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.Dir}, parts...)...)
}

func (c *Cluster) pki(file string) string  { return c.path("pki", file) }
func (c *Cluster) notes() string           { return c.path("pids") }
func (c *Cluster) logFile(n string) string { return c.path("logs", n+".log") }
func (c *Cluster) socket() string          { return c.path("run", "containerd.sock") }

// lockName names the lock and the note of the running up. They lie outside the state
// folder, which comes and goes.
func (c *Cluster) lockName() string {
	sum := sha256.Sum256([]byte(c.Dir))
	return "espalier-cluster-" + hex.EncodeToString(sum[:4])
}

func (c *Cluster) network() host.Network {
	return host.Network{NodeIP: nodeIP, PodCIDR: podCIDR, ServiceCIDR: serviceCIDR, Bridge: bridge}
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "  "+format+"\n", args...)
}
