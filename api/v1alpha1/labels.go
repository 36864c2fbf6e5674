// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels and annotations that Espalier sets. No label or annotation of an
// MCPServer is copied to its children: a GitOps tool would believe that they
// belong to its application.
const (
	// LabelServer on children and pods holds the MCPServer's name. It is the
	// only selector label, and one that users cannot set.
	LabelServer = "mcp.espalier.dev/server"

	// LabelName, LabelInstance and LabelManagedBy are the recommended labels
	// of Kubernetes: "mcp-server", the MCPServer's name, "espalier".
	LabelName      = "app.kubernetes.io/name"
	LabelInstance  = "app.kubernetes.io/instance"
	LabelManagedBy = "app.kubernetes.io/managed-by"

	// ManagedBy is the value of LabelManagedBy and the field manager.
	ManagedBy = "espalier"
	// AppName is the value of LabelName.
	AppName = "mcp-server"

	// AnnotationApplied on a child is the hash of what was applied last.
	AnnotationApplied = "mcp.espalier.dev/applied"
	// AnnotationTemplate on a Deployment is the hash of its pod template
	// without the credentials volume; see internal/resources.
	AnnotationTemplate = "mcp.espalier.dev/template"
	// LabelRollout on the Service of a server says that its pods are given
	// another image of the shared server and that this is not done yet:
	// RolloutOfReady or RolloutOfUnready. (Any change of the Deployment's own
	// metadata would make a new generation of it.)
	LabelRollout = "mcp.espalier.dev/rollout"
	// AnnotationEnv on a pod template is a keyed digest of the Secret and
	// ConfigMap values that reach containers as environment.
	AnnotationEnv = "mcp.espalier.dev/env"
	// AnnotationCatalog on a pod is DIGEST-N: a change of it makes the
	// kubelet sync the pod's volumes at once.
	AnnotationCatalog = "mcp.espalier.dev/catalog"
)

// Values of LabelRollout.
const (
	// RolloutOfReady: the server was Ready before; until it is again others wait.
	RolloutOfReady = "ready"
	// RolloutOfUnready: it was not, which tells nothing about the image.
	RolloutOfUnready = "unready"
)
