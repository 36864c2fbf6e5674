// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Registration is an object that MCPServers serve: an MCPTool, MCPResource or
// MCPPrompt. What they have in common is treated alike.
//
// +kubebuilder:object:generate=false
type Registration interface {
	metav1.Object
	runtime.Object
	// GetRegistrationSpec gives the part of the spec that all kinds share.
	GetRegistrationSpec() *RegistrationSpec
	// GetRegistrationStatus gives the part of the status that all kinds share.
	GetRegistrationStatus() *RegistrationStatus
}

// RegistrationSpec says by which MCPServers something is served.
type RegistrationSpec struct {
	// serverRefs names the MCPServers that serve it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	ServerRefs []ServerRef `json:"serverRefs,omitempty"`

	// serverSelector selects the MCPServers that serve it by label.
	// +optional
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="an empty selector would match every server: name at least one label"
	ServerSelector *metav1.LabelSelector `json:"serverSelector,omitempty"`

	// suspend hides it.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`
}

// ServerRef names an MCPServer in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="tools, resources and prompts are served in their own namespace only: leave out namespace"
type ServerRef struct {
	// name of the MCPServer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name,omitempty"`

	// namespace is refused: attaching something to another team's server would
	// inject text and calls into their agents.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Icon is an image for clients that show one.
type Icon struct {
	// src is an https: or data: URI.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:Pattern=`^(https://|data:image/)`
	Src string `json:"src,omitempty"`

	// mimeType of the image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	MIMEType string `json:"mimeType,omitempty"`

	// sizes such as 48x48, or any.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	Sizes []string `json:"sizes,omitempty"`

	// theme that the icon is for.
	// +optional
	// +kubebuilder:validation:Enum=light;dark
	Theme string `json:"theme,omitempty"`
}

// Role is a side of a conversation.
//
// +kubebuilder:validation:Enum=User;Assistant
type Role string

// Roles.
const (
	RoleUser      Role = "User"
	RoleAssistant Role = "Assistant"
)

// MaxStatusServers is how many servers status.servers of a registration
// names; status.serversOmitted counts the rest.
const MaxStatusServers = 64

// RegistrationStatus is what was observed of a registration. It has no replica
// counts: a rollout of a server writes no registration's status.
type RegistrationStatus struct {
	// observedGeneration is the generation of spec that this status is of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"` //nolint:kubeapilinter // -1 and the generations are all its values.

	// conditions that summarise those of servers.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// serverCount is the number of servers that accepted it.
	// +optional
	ServerCount *int32 `json:"serverCount,omitempty"`

	// servers that serverRefs or serverSelector name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Servers []RegistrationServerStatus `json:"servers,omitempty"`

	// serversOmitted counts the servers that servers has no room for.
	// +optional
	ServersOmitted *int32 `json:"serversOmitted,omitempty"`
}

// RegistrationServerStatus is how a registration fares with one server.
type RegistrationServerStatus struct {
	// name of the MCPServer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// conditions Accepted, ResolvedRefs and Served.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GetRegistrationSpec implements Registration.
func (t *MCPTool) GetRegistrationSpec() *RegistrationSpec { return &t.Spec.RegistrationSpec }

// GetRegistrationStatus implements Registration.
func (t *MCPTool) GetRegistrationStatus() *RegistrationStatus { return &t.Status.RegistrationStatus }

// GetRegistrationSpec implements Registration.
func (r *MCPResource) GetRegistrationSpec() *RegistrationSpec { return &r.Spec.RegistrationSpec }

// GetRegistrationStatus implements Registration.
func (r *MCPResource) GetRegistrationStatus() *RegistrationStatus {
	return &r.Status.RegistrationStatus
}

// GetRegistrationSpec implements Registration.
func (p *MCPPrompt) GetRegistrationSpec() *RegistrationSpec { return &p.Spec.RegistrationSpec }

// GetRegistrationStatus implements Registration.
func (p *MCPPrompt) GetRegistrationStatus() *RegistrationStatus { return &p.Status.RegistrationStatus }
