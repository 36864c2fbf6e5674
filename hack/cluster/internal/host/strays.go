// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net"
	"os"
	"path/filepath"
	"strings"
)

// RemoveStrays removes the few files that the kubelet, containerd's shims and the CNI
// library write to fixed places, as far as they belong to the cluster in stateDir on the CNI network named.
func RemoveStrays(stateDir, network string) {
	removeLinksInto("/var/log/containers", stateDir)
	removeResults("/var/lib/cni/results", network)
	removeDeadSockets("/var/lib/kubelet/device-plugins")
	removeDeadSockets("/run/containerd/s")
	// Removed only if empty: another runtime may use them too.
	for _, dir := range []string{
		"/var/log/containers", "/var/lib/cni/results", "/var/lib/cni",
		"/var/lib/kubelet/device-plugins", "/var/lib/kubelet",
		"/run/containerd/s", "/run/containerd",
	} {
		_ = os.Remove(dir)
	}
}

func removeLinksInto(dir, stateDir string) {
	links, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, stateDir+"/") {
			_ = os.Remove(link)
		}
	}
}

// removeResults removes the network's cached results, and for each sandbox the one of
// its loopback device, whose name says nothing of the network.
func removeResults(dir, network string) {
	results, _ := filepath.Glob(filepath.Join(dir, network+"-*"))
	for _, result := range results {
		sandbox := strings.TrimPrefix(filepath.Base(result), network+"-")
		sandbox, _, _ = strings.Cut(sandbox, "-")
		loopbacks, _ := filepath.Glob(filepath.Join(dir, "cni-loopback-"+sandbox+"-*"))
		for _, path := range append(loopbacks, result) {
			_ = os.Remove(path)
		}
	}
}

// removeDeadSockets removes the sockets of a folder that nobody listens on any more.
func removeDeadSockets(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Type() != os.ModeSocket {
			continue
		}
		if connection, err := net.Dial("unix", path); err == nil {
			_ = connection.Close()
			continue
		}
		_ = os.Remove(path)
	}
}
