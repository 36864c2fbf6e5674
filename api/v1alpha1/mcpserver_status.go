// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxStatusToolsCut is how many tools status.toolsCut names.
const MaxStatusToolsCut = 64

// MaxStatusTools is how many tools status.tools names; status.toolsOmitted
// counts the rest.
const MaxStatusTools = 256

// MCPServerStatus is what was observed of an MCP server. It changes only when
// a fact changes: a fleet at rest writes nothing.
type MCPServerStatus struct {
	// observedGeneration is the generation of spec that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"` //nolint:kubeapilinter // -1 and the generations are all its values.

	// conditions of the server. Ready says: a client can use this server now.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// url of the server inside the cluster. It is set with the Service and
	// never withdrawn: Ready says whether to use it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2304
	URL string `json:"url,omitempty"`

	// replicas is the number of pods.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of pods that are Ready for Kubernetes.
	// +optional
	ReadyReplicas *int32 `json:"readyReplicas,omitempty"`

	// healthyReplicas is the number of pods that take traffic and were proved.
	// +optional
	HealthyReplicas *int32 `json:"healthyReplicas,omitempty"`

	// syncedReplicas is the number of pods that report and list the wanted
	// catalog.
	// +optional
	SyncedReplicas *int32 `json:"syncedReplicas,omitempty"`

	// selector of the pods, for the scale subresource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Selector string `json:"selector,omitempty"`

	// server is what the server says of itself.
	// +optional
	Server *ObservedServer `json:"server,omitempty"`

	// transports that are offered, joined by commas: those of the spec, or, for
	// a Container or an External server, the one that was found to work.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Transports string `json:"transports,omitempty"`

	// toolCount is the number of tools proved on the wire. Absent is unknown;
	// 0 is known to be none.
	// +optional
	ToolCount *int32 `json:"toolCount,omitempty"`

	// resourceCount is the number of resources proved on the wire. Absent is unknown.
	// +optional
	ResourceCount *int32 `json:"resourceCount,omitempty"`

	// promptCount is the number of prompts proved on the wire. Absent is unknown.
	// +optional
	PromptCount *int32 `json:"promptCount,omitempty"`

	// tools proved on the wire, at most 256, by name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Tools []ObservedTool `json:"tools,omitempty"`

	// toolsOmitted counts the tools that tools has no room for.
	// +optional
	ToolsOmitted *int32 `json:"toolsOmitted,omitempty"`

	// toolsCut names tools that tools.max leaves out, at most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	ToolsCut []string `json:"toolsCut,omitempty"`

	// upstreams as the pods see them, in the order of the spec. The child of a
	// server of type Stdio is the first, with the name Stdio.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=33
	Upstreams []ObservedUpstream `json:"upstreams,omitempty"`

	// catalogDigest is the digest of the catalog that the pods are to serve.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	CatalogDigest string `json:"catalogDigest,omitempty"`

	// serverImage is the shared server image of the pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ServerImage string `json:"serverImage,omitempty"`

	// lastProbe is when the facts above were last observed to change.
	// +optional
	LastProbe *LastProbe `json:"lastProbe,omitempty"`
}

// ObservedServer is what the server says of itself.
type ObservedServer struct {
	// name of the server, with control characters escaped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// version of the server, with control characters escaped.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// protocolVersion that the probe spoke.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	ProtocolVersion string `json:"protocolVersion,omitempty"`

	// capabilities that were declared.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Capabilities []string `json:"capabilities,omitempty"`
}

// ObservedTool is a tool as it stands on the wire.
type ObservedTool struct {
	// name of the tool, with control characters escaped.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Name string `json:"name,omitempty"`

	// digest of the definition.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`

	// source says where the tool was declared, for example mcptool/NAME.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=300
	Source string `json:"source,omitempty"`
}

// LastProbe is when the facts of the status were last observed to change.
type LastProbe struct {
	// time of that probe.
	// +required
	Time metav1.Time `json:"time,omitempty,omitzero"` //nolint:kubeapilinter // On the wire it is a string.

	// latencyMilliseconds of that probe.
	// +optional
	LatencyMilliseconds *int64 `json:"latencyMilliseconds,omitempty"`
}
