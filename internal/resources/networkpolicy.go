// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Pods that are chosen by namespace and labels.
type Pods struct {
	Namespace string
	Labels    map[string]string
}

const (
	portDNS          = 53
	portDNSOpenShift = 5353
)

// NetworkPolicy of server's pods, or nil where none is wanted. config is what
// the shared server serves, nil for a Container.
//
// The replicas always reach each other's internal port, and the operator all
// ports that it probes. Ports are those of the pods: policies are enforced
// after a Service's address was replaced. Whether the kubelet's probes pass is
// the network plugin's matter; policies do not apply to a pod's own node.
func (o Options) NetworkPolicy(server *mcpv1.MCPServer, config *serverconfig.Config) *networkingv1.NetworkPolicy {
	wanted := server.Spec.NetworkPolicy
	if wanted == nil || !HasPods(server) {
		return nil
	}
	policy := &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: objectMeta(server, Name(server)),
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: Selector(server)}},
	}
	if wanted.Ingress != nil {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		policy.Spec.Ingress = o.ingress(server, wanted.Ingress)
	}
	if wanted.Egress != nil {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = egress(server, wanted.Egress, config)
	}
	return policy
}

func (o Options) ingress(server *mcpv1.MCPServer, wanted *mcpv1.NetworkPolicyIngress) []networkingv1.NetworkPolicyIngressRule {
	mcp := tcp(ContainerPort(server))
	probed := []networkingv1.NetworkPolicyPort{mcp}
	var rules []networkingv1.NetworkPolicyIngressRule
	if Fronted(server) {
		internal := tcp(PortInternal)
		probed = append(probed, internal)
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{
			From: []networkingv1.NetworkPolicyPeer{replicas(server)}, Ports: []networkingv1.NetworkPolicyPort{internal},
		})
	}
	rules = append(rules, networkingv1.NetworkPolicyIngressRule{
		From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: inNamespace(o.Operator.Namespace),
			PodSelector:       &metav1.LabelSelector{MatchLabels: maps.Clone(o.Operator.Labels)},
		}},
		Ports: probed,
	})
	var from []networkingv1.NetworkPolicyPeer
	if wanted.SameNamespace == nil || *wanted.SameNamespace {
		from = append(from, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	}
	from = append(from, namespaces(wanted.Namespaces)...)
	from = append(from, blocks(wanted.CIDRs, nil)...)
	// A rule with no peers is one for everybody.
	if len(from) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: from, Ports: []networkingv1.NetworkPolicyPort{mcp}})
	}
	return rules
}

func egress(server *mcpv1.MCPServer, wanted *mcpv1.NetworkPolicyEgress, config *serverconfig.Config) []networkingv1.NetworkPolicyEgressRule {
	var rules []networkingv1.NetworkPolicyEgressRule
	if Fronted(server) {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To: []networkingv1.NetworkPolicyPeer{replicas(server)}, Ports: []networkingv1.NetworkPolicyPort{tcp(PortInternal)},
		})
	}
	if wanted.DNS == nil || *wanted.DNS {
		udp := corev1.ProtocolUDP
		port := intstr.FromInt32(portDNS)
		openShift := intstr.FromInt32(portDNSOpenShift)
		rules = append(rules,
			// Name servers are pods, Services, or a cache on the node.
			networkingv1.NetworkPolicyEgressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &port}, tcp(portDNS)}},
			networkingv1.NetworkPolicyEgressRule{
				To:    []networkingv1.NetworkPolicyPeer{{NamespaceSelector: inNamespace("openshift-dns")}},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp, Port: &openShift}, tcp(portDNSOpenShift)},
			})
	}
	if wanted.Upstreams == nil || *wanted.Upstreams {
		rules = append(rules, named(server, config)...)
	}
	if to := namespaces(wanted.Namespaces); len(to) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: to})
	}
	if to := blocks(wanted.CIDRs, wanted.ExceptCIDRs); len(to) > 0 {
		rule := networkingv1.NetworkPolicyEgressRule{To: to}
		for _, port := range wanted.Ports {
			rule.Ports = append(rule.Ports, tcp(port))
		}
		rules = append(rules, rule)
	}
	return rules
}

// named are the rules for what the server names within the cluster. A Service's
// name says neither its pods nor their ports, and the operator reads no
// Services of others: its whole namespace is let through.
func named(server *mcpv1.MCPServer, config *serverconfig.Config) []networkingv1.NetworkPolicyEgressRule {
	d := destinationsOf(server, config)
	var to []networkingv1.NetworkPolicyPeer
	for _, name := range d.servers {
		to = append(to, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{mcpv1.LabelServer: name}}})
	}
	for _, name := range d.namespaces {
		to = append(to, networkingv1.NetworkPolicyPeer{NamespaceSelector: inNamespace(name)})
	}
	var rules []networkingv1.NetworkPolicyEgressRule
	if len(to) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: to})
	}
	for _, address := range d.addresses {
		host := netip.PrefixFrom(address.Addr(), address.Addr().BitLen()).String()
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{
			To:    []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: host}}},
			Ports: []networkingv1.NetworkPolicyPort{tcp(int32(address.Port()))},
		})
	}
	return rules
}

func replicas(server *mcpv1.MCPServer) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: Selector(server)}}
}

func tcp(port int32) networkingv1.NetworkPolicyPort {
	protocol, number := corev1.ProtocolTCP, intstr.FromInt32(port)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &number}
}

// inNamespace selects one namespace by the label that Kubernetes gives each.
func inNamespace(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

func namespaces(selectors []metav1.LabelSelector) []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for i := range selectors {
		out = append(out, networkingv1.NetworkPolicyPeer{NamespaceSelector: selectors[i].DeepCopy()})
	}
	return out
}

// blocks gives cidrs, each without those of except that lie in it.
func blocks(cidrs, except []mcpv1.CIDR) []networkingv1.NetworkPolicyPeer {
	var out []networkingv1.NetworkPolicyPeer
	for _, c := range cidrs {
		block := &networkingv1.IPBlock{CIDR: string(c)}
		for _, e := range except {
			if within(e, c) {
				block.Except = append(block.Except, string(e))
			}
		}
		out = append(out, networkingv1.NetworkPolicyPeer{IPBlock: block})
	}
	return out
}

// within reports whether inner is a part of outer and smaller; the API server
// takes no other exception.
func within(inner, outer mcpv1.CIDR) bool {
	i, err := netip.ParsePrefix(string(inner))
	if err != nil {
		return false
	}
	o, err := netip.ParsePrefix(string(outer))
	return err == nil && o.Bits() < i.Bits() && o.Contains(i.Addr())
}
