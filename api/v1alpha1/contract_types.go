// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MaxContractTools is how many tools a contract may pin.
const MaxContractTools = 256

// DriftPolicy says what happens to a tool that is not what was promised.
//
// +kubebuilder:validation:Enum=Report;Hide
type DriftPolicy string

// What happens to a tool that is not what was promised.
const (
	// DriftReport: the condition ContractMet says so.
	DriftReport DriftPolicy = "Report"
	// DriftHide: it is withheld as well.
	DriftHide DriftPolicy = "Hide"
)

// Contract is what the clients of a server were promised. A digest is
// SHA-256 of the part's JSON in the form of RFC 8785; status.tools has those
// of what is served now.
//
// +kubebuilder:validation:XValidation:rule="has(self.instructions) || has(self.tools)",message="a contract pins instructions, tools or both"
// +kubebuilder:validation:XValidation:rule="!has(self.onDrift) || self.onDrift != 'Hide' || has(self.tools)",message="onDrift Hide needs tools: instructions cannot be withheld"
type Contract struct {
	// onDrift says what happens to a pinned tool that differs: Report tells it
	// in the condition ContractMet, Hide withholds the tool as well. Defaults
	// to Report.
	// +optional
	OnDrift DriftPolicy `json:"onDrift,omitempty"`

	// instructions is the digest of the instructions that the server gives to
	// models, "v1:sha256:HEX".
	// +optional
	// +kubebuilder:validation:MinLength=74
	// +kubebuilder:validation:MaxLength=74
	// +kubebuilder:validation:Pattern=`^v1:sha256:[0-9a-f]{64}$`
	Instructions string `json:"instructions,omitempty"`

	// tools are the pinned tools. Others may come and go.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Tools []ContractTool `json:"tools,omitempty"`
}

// ContractTool is what was promised of one tool.
//
// +kubebuilder:validation:XValidation:rule="has(self.digest) || has(self.fields) || has(self.upstreamDigest)",message="a pinned tool needs digest, fields or upstreamDigest"
type ContractTool struct {
	// name on the wire, after prefix and overrides.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// digest of the whole definition, as in status.tools: "v1:sha256:HEX" of
	// the name and the digests of the fields.
	// +optional
	// +kubebuilder:validation:MinLength=74
	// +kubebuilder:validation:MaxLength=74
	// +kubebuilder:validation:Pattern=`^v1:sha256:[0-9a-f]{64}$`
	Digest string `json:"digest,omitempty"`

	// fields are digests of parts. Beside digest they say which part differs,
	// and one that is left out stands for a part that is absent. Without
	// digest each that is set is pinned by itself, and the rest may change.
	// +optional
	Fields *ContractFields `json:"fields,omitempty"`

	// upstreamDigest is the digest of the definition as its upstream gives it,
	// before prefix and overrides. It needs a server that Espalier stands in
	// front of.
	// +optional
	// +kubebuilder:validation:MinLength=74
	// +kubebuilder:validation:MaxLength=74
	// +kubebuilder:validation:Pattern=`^v1:sha256:[0-9a-f]{64}$`
	UpstreamDigest string `json:"upstreamDigest,omitempty"`
}

// ContractFields are digests of the parts of a tool's definition,
// "sha256:HEX" each.
//
// +kubebuilder:validation:MinProperties=1
type ContractFields struct {
	// title of the tool.
	// +optional
	Title FieldDigest `json:"title,omitempty"`
	// description of the tool.
	// +optional
	Description FieldDigest `json:"description,omitempty"`
	// inputSchema of the tool.
	// +optional
	InputSchema FieldDigest `json:"inputSchema,omitempty"`
	// outputSchema of the tool.
	// +optional
	OutputSchema FieldDigest `json:"outputSchema,omitempty"`
	// annotations of the tool.
	// +optional
	Annotations FieldDigest `json:"annotations,omitempty"`
	// other is an object of all the rest but the icons.
	// +optional
	Other FieldDigest `json:"other,omitempty"`
}

// FieldDigest is "sha256:HEX".
//
// +kubebuilder:validation:MinLength=71
// +kubebuilder:validation:MaxLength=71
// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
type FieldDigest string
