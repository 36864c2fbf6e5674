// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
)

// Network is what the host must know of the cluster's addresses.
type Network struct {
	// NodeIP is put on the loopback interface: it stays the same when the machine's real
	// address changes, exists without a network, and nobody outside can reach it.
	NodeIP string
	// PodCIDR is forwarded even where the host's policy is to drop.
	PodCIDR string
	// ServiceCIDR is never forwarded: kube-proxy puts a pod's address in its place.
	ServiceCIDR string
	// Bridge is the CNI bridge's name.
	Bridge string
}

// loopbackLabel marks our address, and must begin with the interface's name.
const loopbackLabel = "lo:espalier"

// SetUp adds the node's address and lets packets of pods pass.
func (n Network) SetUp() error {
	if err := writeSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	// A reply between two pods of one bridge must pass conntrack, or it keeps the address
	// of the pod instead of the Service's. Some kernels build br_netfilter as a module.
	_, _ = run(nil, "modprobe", "br_netfilter")
	if err := writeSysctl("net/bridge/bridge-nf-call-iptables", "1"); err != nil {
		return err
	}
	if _, err := run(nil, "ip", "addr", "replace", n.NodeIP+"/32", "dev", "lo", "label", loopbackLabel); err != nil {
		return err
	}
	return n.acceptForwarding()
}

// TearDown removes the address and the bridge; what is already gone is no error.
func (n Network) TearDown() {
	_, _ = run(nil, "ip", "addr", "del", n.NodeIP+"/32", "dev", "lo")
	for _, veth := range n.bridged() {
		_, _ = run(nil, "ip", "link", "del", veth)
	}
	if interfaceExists(n.Bridge) {
		_, _ = run(nil, "ip", "link", "del", n.Bridge)
	}
}

// Left lists what of the network still exists.
func (n Network) Left() []string {
	var left []string
	if interfaceExists(n.Bridge) {
		left = append(left, "interface "+n.Bridge)
	}
	if out, _ := run(nil, "ip", "-o", "addr", "show", "dev", "lo"); strings.Contains(out, " "+n.NodeIP+"/") {
		left = append(left, "address "+n.NodeIP)
	}
	return left
}

func (n Network) bridged() []string {
	paths, _ := filepath.Glob(filepath.Join("/sys/class/net", n.Bridge, "brif", "*"))
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func interfaceExists(name string) bool {
	_, err := os.Stat(filepath.Join("/sys/class/net", name))
	return err == nil
}

func writeSysctl(name, value string) error {
	path := filepath.Join("/proc/sys", name)
	if data, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(data)) == value {
		return nil
	}
	return os.WriteFile(path, []byte(value), 0o644)
}
