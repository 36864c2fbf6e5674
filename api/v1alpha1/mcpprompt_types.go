// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPPrompt is one prompt that MCPServers of its namespace serve: what clients
// see of it and the messages that it gives.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcpp,categories=mcp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Prompt",type=string,JSONPath=`.status.promptName`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.serverCount`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Served",type=string,JSONPath=`.status.conditions[?(@.type=="Served")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Served")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || self.metadata.name.size() <= 128",message="the prompt's name on the wire has at most 128 characters: set spec.name"
type MCPPrompt struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +required
	Spec MCPPromptSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPPromptStatus `json:"status,omitempty,omitzero"`
}

// MCPPromptList is a list of MCPPrompts.
//
// +kubebuilder:object:root=true
type MCPPromptList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPPrompt `json:"items"`
}

// MCPPromptSpec is what is wanted of a prompt.
//
// +kubebuilder:validation:XValidation:rule="has(self.serverRefs) != has(self.serverSelector)",message="set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the prompt"
type MCPPromptSpec struct {
	RegistrationSpec `json:",inline"`

	// name on the wire. Defaults to metadata.name.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]{1,128}$`
	Name string `json:"name,omitempty"`

	// title for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// description says what the prompt is for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Description string `json:"description,omitempty"`

	// icons for clients that show them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Icons []Icon `json:"icons,omitempty"`

	// meta is the prompt's _meta on the wire.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Meta *JSON `json:"meta,omitempty"`

	// metadata classifies the prompt and never reaches the wire. Prompts with
	// entryPoint "true" are listed first.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && self[k].size() <= 256)",message="a key has at most 64 characters, a value at most 256"
	Metadata map[string]string `json:"metadata,omitempty"`

	// arguments that the prompt takes, all of them strings. They are listed in
	// this order and are the variable args of expressions.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Arguments []PromptArgument `json:"arguments,omitempty"`

	// messages that the prompt gives, in this order.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Messages []PromptMessage `json:"messages,omitempty"`
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	// name of the argument.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Name string `json:"name,omitempty"`

	// title for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// description of the argument.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Description string `json:"description,omitempty"`

	// required says that the prompt is refused without it.
	// +optional
	Required *bool `json:"required,omitempty"`

	// completions are values that are offered to who types one. Others are
	// accepted too.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Completions []string `json:"completions,omitempty"`
}

// PromptMessage is one message of a prompt.
type PromptMessage struct {
	// role of who says it.
	// +required
	Role Role `json:"role,omitempty"`

	// content of the message.
	// +required
	Content PromptContent `json:"content,omitempty,omitzero"`
}

// PromptContent is the content of a message: literal, or by CEL over args and
// principal.
//
// +kubebuilder:validation:XValidation:rule="[has(self.text), has(self.blob), has(self.expression)].filter(x, x).size() in (self.type == 'EmbeddedResource' ? [0, 1] : [1])",message="set exactly one of text, blob and expression; an EmbeddedResource without them is the resource that the server itself has at uri"
// +kubebuilder:validation:XValidation:rule="!has(self.text) || self.type in ['Text', 'EmbeddedResource', 'ResourceLink']",message="text is for Text, EmbeddedResource and ResourceLink"
// +kubebuilder:validation:XValidation:rule="!has(self.blob) || self.type in ['Image', 'Audio', 'EmbeddedResource']",message="blob is for Image, Audio and EmbeddedResource"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Image', 'Audio']) || has(self.mimeType)",message="mimeType is needed for Image and Audio"
// +kubebuilder:validation:XValidation:rule="self.type in ['EmbeddedResource', 'ResourceLink'] ? has(self.uri) != has(self.uriExpression) : !has(self.uri) && !has(self.uriExpression)",message="EmbeddedResource and ResourceLink need exactly one of uri and uriExpression, which no other type has"
type PromptContent struct {
	// type of the content.
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

	// uriExpression is CEL that gives the URI of the resource.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	URIExpression string `json:"uriExpression,omitempty"`

	// text is literal: the text of a Text or EmbeddedResource, the name of a
	// ResourceLink.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Text string `json:"text,omitempty"`

	// blob is literal data in base64.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=349528
	// +kubebuilder:validation:Format=""
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
	Blob []byte `json:"blob,omitempty"` // Without a format: CEL would read it as base64 for URLs, and refuse '+' and '/'.

	// expression is CEL that gives the data: a string for Text; bytes, or a
	// string of base64, for Image and Audio; a string (text) or bytes (blob)
	// for EmbeddedResource; the name of a ResourceLink.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression,omitempty"`
}

// MCPPromptStatus is what was observed of a prompt.
type MCPPromptStatus struct {
	RegistrationStatus `json:",inline"`

	// promptName is the name on the wire.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	PromptName string `json:"promptName,omitempty"`
}
