// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ContentType is the type of a content block of an answer.
//
// +kubebuilder:validation:Enum=Text;Image;Audio;EmbeddedResource;ResourceLink
type ContentType string

// Content types.
const (
	ContentText             ContentType = "Text"
	ContentImage            ContentType = "Image"
	ContentAudio            ContentType = "Audio"
	ContentEmbeddedResource ContentType = "EmbeddedResource"
	ContentResourceLink     ContentType = "ResourceLink"
)

// Content is one content block of an answer.
//
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Image', 'Audio']) || has(self.mimeType)",message="mimeType is needed for Image and Audio"
// +kubebuilder:validation:XValidation:rule="(self.type in ['EmbeddedResource', 'ResourceLink']) == has(self.uri)",message="uri is for EmbeddedResource and ResourceLink, and needed there"
type Content struct {
	// type of the block.
	// +required
	Type ContentType `json:"type,omitempty"`

	// mimeType of the data.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	MIMEType string `json:"mimeType,omitempty"`

	// uri of the resource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URI string `json:"uri,omitempty"`

	// expression is CEL that gives the data: a string for Text; bytes, or a
	// string of base64, for Image and Audio; a string (text) or bytes (blob)
	// for EmbeddedResource; the name of a ResourceLink.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression,omitempty"`
}

// Result makes a tool's answer out of CEL expressions.
//
// +kubebuilder:validation:XValidation:rule="[has(self.structured), has(self.text), has(self.content)].filter(x, x).size() <= 1",message="set at most one of structured, text and content"
// +kubebuilder:validation:MinProperties=1
type Result struct {
	// structured is CEL that gives an object: the structured content, and
	// its JSON as text.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Structured string `json:"structured,omitempty"`

	// text is CEL that gives a string: one text block.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Text string `json:"text,omitempty"`

	// content is a list of blocks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Content []Content `json:"content,omitempty"`

	// isError is CEL that gives a bool: whether the answer reports a failure.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	IsError string `json:"isError,omitempty"`
}
