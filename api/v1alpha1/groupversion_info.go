// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the API of mcp.espalier.dev/v1alpha1: MCP servers and
// what they serve, as custom resources.
//
// Durations are integers of seconds named ...Seconds. Lists with a natural
// key are list-maps, sets are sets, ordered or foreign lists are atomic.
//
// +kubebuilder:object:generate=true
// +groupName=mcp.espalier.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of this package's types.
	GroupVersion = schema.GroupVersion{Group: "mcp.espalier.dev", Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this package's types.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&MCPServer{}, &MCPServerList{},
		&MCPTool{}, &MCPToolList{},
		&MCPResource{}, &MCPResourceList{},
		&MCPPrompt{}, &MCPPromptList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
