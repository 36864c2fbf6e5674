// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resources builds the objects that an MCPServer owns. It is pure:
// no client, no clock, no map order in what it returns; the same input gives
// the same bytes in every process.
package resources

import (
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
)

// Ports of the pods and the Service.
const (
	// PortMCP is the Service's port, and the container's in pods of the
	// shared image.
	PortMCP = 8080
	// PortInternal of pods of the shared image: report, health, metrics, and
	// what replicas pass on to each other. No Service but the headless one of
	// the replicas leads to it.
	PortInternal = 8081

	portNameMCP      = "mcp"
	portNameInternal = "internal"
)

// Name of the Deployment, the Service, the PodDisruptionBudget and the
// NetworkPolicy of server.
func Name(server *mcpv1.MCPServer) string { return server.Name + "-mcp" }

// PeersName of the headless Service by which replicas find each other.
func PeersName(server *mcpv1.MCPServer) string { return server.Name + "-mcp-peers" }

// CatalogName of the ConfigMap with the index (shard 0) or a shard.
func CatalogName(server *mcpv1.MCPServer, shard int) string {
	if shard == 0 {
		return server.Name + "-mcp-catalog"
	}
	return fmt.Sprintf("%s-mcp-catalog-%d", server.Name, shard)
}

// HasPods reports whether Espalier runs pods for server.
func HasPods(server *mcpv1.MCPServer) bool { return server.Spec.Type != mcpv1.TypeExternal }

// Fronted reports whether the shared server serves server, in its own image or
// copied into another.
func Fronted(server *mcpv1.MCPServer) bool {
	return server.Spec.Type == mcpv1.TypeTools || server.Spec.Type == mcpv1.TypeStdio || server.Spec.Type == ""
}

// Host is the Service's DNS name, as clients in the cluster use it.
func Host(server *mcpv1.MCPServer) string { return catalog.ServiceHost(server) }

// URL of server for clients in the cluster. That of an External server has
// neither its query nor its credentials.
func URL(server *mcpv1.MCPServer) string {
	if e := server.Spec.External; e != nil {
		u, err := url.Parse(e.URL)
		if err != nil {
			return ""
		}
		u.User, u.RawQuery, u.ForceQuery, u.Fragment = nil, "", false, ""
		return u.String()
	}
	transport, path := catalog.Endpoint(server)
	scheme := "http"
	if transport == mcpv1.TransportWebSocket {
		scheme = "ws"
	}
	if server.Spec.TLS != nil {
		scheme += "s"
	}
	return fmt.Sprintf("%s://%s:%d%s", scheme, Host(server), PortMCP, path)
}

// ContainerPort of the MCP endpoint in the pods.
func ContainerPort(server *mcpv1.MCPServer) int32 {
	if c := server.Spec.Container; c != nil && c.Port != nil {
		return *c.Port
	}
	return PortMCP
}

// Transports that server offers, as its status shows them. That of a Container
// or an External server is what was found to work, empty before.
func Transports(server *mcpv1.MCPServer) string {
	if !Fronted(server) {
		return ""
	}
	var names []string
	for _, t := range catalog.Transports(server) {
		names = append(names, string(t.Type))
	}
	return strings.Join(names, ",")
}

// Selector labels of the pods. Users can set none of them.
func Selector(server *mcpv1.MCPServer) map[string]string {
	return map[string]string{mcpv1.LabelServer: server.Name}
}

// Labels of every child. Nothing of the MCPServer's own labels is copied: a
// GitOps tool would take the children for its own.
func Labels(server *mcpv1.MCPServer) map[string]string {
	return map[string]string{
		mcpv1.LabelServer:    server.Name,
		mcpv1.LabelName:      mcpv1.AppName,
		mcpv1.LabelInstance:  server.Name,
		mcpv1.LabelManagedBy: mcpv1.ManagedBy,
	}
}

func objectMeta(server *mcpv1.MCPServer, name string) metav1.ObjectMeta {
	yes := true
	return metav1.ObjectMeta{
		Name: name, Namespace: server.Namespace, Labels: Labels(server),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: mcpv1.GroupVersion.String(), Kind: "MCPServer",
			Name: server.Name, UID: server.UID, Controller: &yes, BlockOwnerDeletion: &yes,
		}},
	}
}
