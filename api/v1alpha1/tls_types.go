// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ServerTLS is the certificate of a server.
type ServerTLS struct {
	// secretRef names a kubernetes.io/tls Secret: the server's certificate with
	// its chain, and its key. Rotation is live. The certificate bears the name
	// NAME-mcp.NAMESPACE.svc, or that of serverName.
	// +required
	SecretRef CertificateRef `json:"secretRef,omitempty,omitzero"`

	// ca has the authorities by which the operator, the other replicas and the
	// servers that have this one as an upstream verify the certificate. Defaults
	// to the key ca.crt of the Secret, where cert-manager has it.
	// +optional
	CA *CABundle `json:"ca,omitempty"`

	// serverName is the name that they expect in it. Defaults to
	// NAME-mcp.NAMESPACE.svc.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`
}
