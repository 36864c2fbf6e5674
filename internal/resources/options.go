// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

// Options of the operator that reach the pods.
type Options struct {
	// ServerImage is the shared server image.
	ServerImage string
	// ImagePullSecrets for every pod, beside the MCPServer's own.
	ImagePullSecrets []string
	// Mirrors that images are pulled from, the user's too.
	Mirrors Mirrors
	// RunAsUser of pods of the shared image; nil leaves it to the platform
	// (OpenShift).
	RunAsUser *int64
	// PodSecurity is the level that pods are judged by: privileged, baseline
	// or restricted.
	PodSecurity string
	// Operator is the operator itself, which NetworkPolicies let in.
	Operator Pods
}

// DefaultRunAsUser is the user of pods of the shared image.
const DefaultRunAsUser int64 = 65532

// PulledServerImage is ServerImage by the name that pods have it under.
func (o Options) PulledServerImage() string { return o.Mirrors.image(o.ServerImage) }
