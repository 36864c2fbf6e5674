// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"os/exec"
	"strings"
)

// forwardChain and outputChain hold our own rules. Docker, for one, sets the policy of
// FORWARD to DROP.
const (
	forwardChain = "ESPALIER-FORWARD"
	outputChain  = "ESPALIER-OUTPUT"
)

// chainPrefixes are those of the chains that kube-proxy, the kubelet, the CNI plugins,
// kube-router and we ourselves make.
var chainPrefixes = []string{"KUBE-", "CNI-", "ESPALIER-"}

func (n Network) acceptForwarding() error {
	rules := strings.Join([]string{
		"*filter",
		":" + forwardChain + " - [0:0]",
		":" + outputChain + " - [0:0]",
		// A packet to a Service's own address goes nowhere: while kube-proxy sets one
		// up, a packet may slip through, and whoever answers it far away is believed.
		"-A " + forwardChain + " -d " + n.ServiceCIDR + " -j REJECT",
		"-A " + outputChain + " -d " + n.ServiceCIDR + " -j REJECT",
		"-A " + forwardChain + " -s " + n.PodCIDR + " -j ACCEPT",
		"-A " + forwardChain + " -d " + n.PodCIDR + " -j ACCEPT",
		"-A FORWARD -j " + forwardChain,
		"-A OUTPUT -j " + outputChain,
		"COMMIT", "",
	}, "\n")
	_, err := run([]byte(rules), "iptables-restore", "-w", "5", "--noflush")
	return err
}

// FlushChains removes the cluster's chains and every rule that mentions one, of IPv4 and
// IPv6, and the sets that rules of kube-router match against.
func FlushChains() {
	for _, tool := range []string{"iptables", "ip6tables"} {
		flushTables(tool)
	}
	for _, set := range ipsets() {
		_, _ = run(nil, "ipset", "destroy", set)
	}
}

// ChainsLeft lists rules that mention one of the cluster's chains.
func ChainsLeft() []string {
	var left []string
	for _, tool := range []string{"iptables", "ip6tables"} {
		rules, _ := run(nil, tool+"-save")
		for line := range strings.Lines(rules) {
			if ours(line) {
				left = append(left, tool+" "+strings.TrimSpace(line))
			}
		}
	}
	return left
}

func flushTables(tool string) {
	if _, err := exec.LookPath(tool + "-save"); err != nil {
		return
	}
	rules, err := run(nil, tool+"-save", "-c")
	if err != nil {
		return
	}
	kept, removed := withoutOurs(rules)
	if removed {
		_, _ = run(kept, tool+"-restore", "-w", "5", "-c")
	}
}

// withoutOurs drops the cluster's lines from the output of iptables-save. Restoring the
// rest replaces each table as a whole, so that no order of deletion has to be found.
func withoutOurs(rules string) (kept []byte, removed bool) {
	var buffer bytes.Buffer
	for line := range strings.Lines(rules) {
		if ours(line) {
			removed = true
			continue
		}
		buffer.WriteString(line)
	}
	return buffer.Bytes(), removed
}

// ours tells whether a line of iptables-save declares or mentions one of our chains.
func ours(line string) bool {
	for field := range strings.FieldsSeq(line) {
		name := strings.TrimPrefix(field, ":")
		for _, prefix := range chainPrefixes {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
	}
	return false
}

func ipsets() []string {
	out, err := run(nil, "ipset", "list", "-n")
	if err != nil {
		return nil
	}
	var names []string
	for name := range strings.FieldsSeq(out) {
		if strings.HasPrefix(name, "KUBE-") || strings.HasPrefix(name, "kube-router-") || strings.HasPrefix(name, "inet6:KUBE-") {
			names = append(names, name)
		}
	}
	return names
}
