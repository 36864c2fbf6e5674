// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
)

// resolvFiles are searched in this order for name servers that a pod can reach; the
// second is where systemd-resolved keeps the real ones behind its stub.
var resolvFiles = []string{"/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"}

// resolvConf is the host's resolv.conf as far as it is of use inside a pod. It may be empty.
func resolvConf() []byte {
	for _, path := range resolvFiles {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if usable := usableNameservers(data); len(usable) > 0 {
			return usable
		}
	}
	return nil
}

// usableNameservers keeps name servers that are not on a loopback address: a pod's
// loopback is its own, and CoreDNS would ask itself.
func usableNameservers(conf []byte) []byte {
	var kept bytes.Buffer
	for line := range strings.Lines(string(conf)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "nameserver" {
			continue
		}
		if ip, err := netip.ParseAddr(fields[1]); err == nil && !ip.IsLoopback() {
			kept.WriteString("nameserver " + fields[1] + "\n")
		}
	}
	return kept.Bytes()
}
