// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Service of server.
func Service(server *mcpv1.MCPServer) *corev1.Service {
	appProtocol := "http"
	if server.Spec.TLS != nil {
		appProtocol = "https"
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: objectMeta(server, Name(server)),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: Selector(server),
			Ports: []corev1.ServicePort{{
				Name: portNameMCP, Port: PortMCP, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromString(portNameMCP), AppProtocol: &appProtocol,
			}},
		},
	}
}

// PeersService by which the replicas of server find each other, or nil where
// there is one at most, or none of ours. It has pods that are not ready too: a
// session lives as long as its pod does.
func PeersService(server *mcpv1.MCPServer) *corev1.Service {
	if !Fronted(server) || Replicas(server) < 2 {
		return nil
	}
	appProtocol := "http"
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: objectMeta(server, PeersName(server)),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true,
			Selector: Selector(server),
			Ports: []corev1.ServicePort{{
				Name: portNameInternal, Port: PortInternal, Protocol: corev1.ProtocolTCP,
				TargetPort: intstr.FromString(portNameInternal), AppProtocol: &appProtocol,
			}},
		},
	}
}

// PodDisruptionBudget of server, or nil below 2 replicas, where it could only
// block a drain or allow everything.
func PodDisruptionBudget(server *mcpv1.MCPServer) *policyv1.PodDisruptionBudget {
	if Replicas(server) < 2 {
		return nil
	}
	one := intstr.FromInt32(1)
	always := policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"},
		ObjectMeta: objectMeta(server, Name(server)),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: &one,
			Selector:       &metav1.LabelSelector{MatchLabels: Selector(server)},
			// A pod that does not serve must not keep a node from draining.
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// Replicas that server's Deployment is to have.
func Replicas(server *mcpv1.MCPServer) int32 {
	switch {
	case Suspended(server):
		return 0
	case server.Spec.Replicas == nil:
		return 1
	default:
		return *server.Spec.Replicas
	}
}

// Suspended reports whether spec.suspend is true.
func Suspended(server *mcpv1.MCPServer) bool {
	return server.Spec.Suspend != nil && *server.Spec.Suspend
}
