// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NetworkPolicy becomes the NetworkPolicy NAME-mcp of the server's pods. The
// cluster's network plugin must enforce policies. The direction that is left
// out is not limited.
//
// +kubebuilder:validation:MinProperties=1
type NetworkPolicy struct {
	// ingress says who may connect to the MCP port, beside the operator. The
	// replicas of the server always reach each other.
	// +optional
	Ingress *NetworkPolicyIngress `json:"ingress,omitempty"` //nolint:kubeapilinter // {} is the defaults.

	// egress says where the pods may connect to, beside each other.
	// +optional
	Egress *NetworkPolicyEgress `json:"egress,omitempty"` //nolint:kubeapilinter // {} is the defaults.
}

// NetworkPolicyIngress says who may connect to the MCP port. {} is every pod of
// the server's namespace.
type NetworkPolicyIngress struct {
	// sameNamespace lets in the pods of the server's namespace. Defaults to true.
	// +optional
	SameNamespace *bool `json:"sameNamespace,omitempty"`

	// namespaces whose pods are let in, by their labels. {} is all namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Namespaces []metav1.LabelSelector `json:"namespaces,omitempty"`

	// cidrs that are let in, for clients that are no pods: hosts, load balancers.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	CIDRs []CIDR `json:"cidrs,omitempty"`
}

// NetworkPolicyEgress says where the pods may connect to. {} is name servers
// and what the server names within the cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.exceptCIDRs) || has(self.cidrs) && self.exceptCIDRs.all(e, self.cidrs.exists(c, c != e && isCIDR(c) && isCIDR(e) && cidr(c).containsCIDR(e)))",message="each of exceptCIDRs lies within one of cidrs, and is smaller"
// +kubebuilder:validation:XValidation:rule="!has(self.ports) || has(self.cidrs)",message="ports are those of cidrs: set cidrs"
type NetworkPolicyEgress struct {
	// dns lets the pods ask name servers: port 53 anywhere, and port 5353 in the
	// namespace openshift-dns. Defaults to true.
	// +optional
	DNS *bool `json:"dns,omitempty"`

	// upstreams lets the pods reach what the server's upstreams, tools and
	// resources name: the pods of an MCPServer, the namespace of a Service (NAME,
	// or NAME.NAMESPACE.svc), a literal address. Hosts outside of the cluster
	// need cidrs. Defaults to true.
	// +optional
	Upstreams *bool `json:"upstreams,omitempty"`

	// namespaces whose pods may be reached, on every port, by their labels. {} is
	// all namespaces.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Namespaces []metav1.LabelSelector `json:"namespaces,omitempty"`

	// cidrs that may be reached.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	CIDRs []CIDR `json:"cidrs,omitempty"`

	// exceptCIDRs are taken out of cidrs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ExceptCIDRs []CIDR `json:"exceptCIDRs,omitempty"`

	// ports (TCP) of cidrs. Defaults to all, of every protocol.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	Ports []int32 `json:"ports,omitempty"`
}

// CIDR is a network, for example 203.0.113.0/24 or 2001:db8::/64.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && string(cidr(self).masked()) == self",message="a CIDR is a network, for example 203.0.113.0/24 or 2001:db8::/64, with no bits set beyond its length"
type CIDR string
