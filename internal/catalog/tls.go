// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Keys of a kubernetes.io/tls Secret. The last one is where cert-manager puts
// the authorities.
const (
	keyCert = "tls.crt"
	keyKey  = "tls.key"
	keyCA   = "ca.crt"
)

// ServingRefs are the references without which server cannot speak TLS.
func ServingRefs(server *mcpv1.MCPServer) []Ref {
	t := server.Spec.TLS
	if t == nil {
		return nil
	}
	return []Ref{
		{Kind: RefSecret, Name: t.SecretRef.Name, Key: keyCert},
		{Kind: RefSecret, Name: t.SecretRef.Name, Key: keyKey},
	}
}

// ClientTLS is how server's certificate is verified; nil where it has none.
func ClientTLS(server *mcpv1.MCPServer) *mcpv1.ClientTLS {
	t := server.Spec.TLS
	if t == nil {
		return nil
	}
	ca := t.CA
	if ca == nil {
		ca = &mcpv1.CABundle{SecretKeyRef: &mcpv1.SecretKeyRef{Name: t.SecretRef.Name, Key: keyCA}}
	}
	return &mcpv1.ClientTLS{CA: ca, ServerName: cmp.Or(t.ServerName, ServiceHost(server))}
}

// serveTLS puts the server's certificate into the catalog.
func (c *Catalog) serveTLS(server *mcpv1.MCPServer) {
	refs := ServingRefs(server)
	if refs == nil {
		return
	}
	client := ClientTLS(server)
	ca := TLSRefs(client)
	c.Config.TLS = &serverconfig.ServingTLS{
		CertFile: refs[0].Path(), KeyFile: refs[1].Path(), CAFile: ca[0].Path(), ServerName: client.ServerName,
	}
	c.Config.Require(serverconfig.FeatureTLS)
	c.Refs = append(append(c.Refs, refs...), ca...)
}

// ServiceHost is the DNS name of server's Service, as clients in the cluster
// use it.
func ServiceHost(server *mcpv1.MCPServer) string {
	return server.Name + "-mcp." + server.Namespace + ".svc"
}
