// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// StdioSource is an image with a program that speaks MCP over stdin and
// stdout. Each pod runs one child that answers lists and probes, and either it
// or children of their own serve the clients.
//
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !(has(self.limits.maxProcesses) || has(self.limits.idleSeconds)) || (has(self.sharing) && self.sharing == 'PerClient')",message="limits.maxProcesses and limits.idleSeconds are for sharing PerClient"
type StdioSource struct {
	// image to run. It needs nothing of Espalier's: the shared server is
	// copied beside it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\s]+$`
	Image string `json:"image,omitempty"`

	// command of the child, with its arguments. There is no shell.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self[0].size() > 0",message="the first word of command names a program"
	Command []string `json:"command,omitempty"`

	// args follow command.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=0
	// +kubebuilder:validation:items:MaxLength=4096
	Args []string `json:"args,omitempty"`

	// env of the child. Beside these, those of workload.env, and PATH, HOME,
	// LANG, TMPDIR, USER and the caches of launchers it gets none. A Secret
	// that it names rolls the pods once when it changes.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	Env []corev1.EnvVar `json:"env,omitempty"`

	// workingDir of the child. Defaults to that of the image.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/`
	WorkingDir string `json:"workingDir,omitempty"`

	// sharing says who shares a child. Defaults to Shared.
	// +optional
	Sharing StdioSharing `json:"sharing,omitempty"`

	// forward names what a child may ask of its client, where that client can
	// be asked. Defaults to Elicitation. A child of an older revision of the
	// protocol asks only where it has one client, with sharing PerClient. Name
	// Roots with care: some servers replace the folders that they may touch by
	// those of the client.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Forward []StdioAsk `json:"forward,omitempty"`

	// limits of the child. Its first handshake has startupTimeoutSeconds.
	// +optional
	Limits *StdioLimits `json:"limits,omitempty"`
}

// StdioSharing says who shares a child.
//
// +kubebuilder:validation:Enum=Shared;PerClient
type StdioSharing string

// Who shares a child.
const (
	// SharingShared: all clients.
	SharingShared StdioSharing = "Shared"
	// SharingPerClient: each session has a child of its own, and so has each
	// caller without a session whose identity was verified. All others share
	// one. The child that answers lists and probes serves no client.
	SharingPerClient StdioSharing = "PerClient"
)

// StdioAsk is something that a server asks of a client.
//
// +kubebuilder:validation:Enum=Elicitation;Sampling;Roots
type StdioAsk string

// What a server asks of a client.
const (
	// AskElicitation: something that its user is to say.
	AskElicitation StdioAsk = "Elicitation"
	// AskSampling: something that its model is to say.
	AskSampling StdioAsk = "Sampling"
	// AskRoots: the folders that it works in.
	AskRoots StdioAsk = "Roots"
)

// StdioLimits bound a child.
//
// +kubebuilder:validation:MinProperties=1
type StdioLimits struct {
	// handshakeTimeoutSeconds is how long a child may take to answer when it
	// is started again. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	HandshakeTimeoutSeconds *int32 `json:"handshakeTimeoutSeconds,omitempty"`

	// maxMessageBytes bounds one message of the child. Defaults to 10485760
	// (10 MiB).
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=104857600
	MaxMessageBytes *int64 `json:"maxMessageBytes,omitempty"`

	// maxStderrBytes is how many of the most recent bytes of stderr are kept
	// for diagnosis. Defaults to 65536.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=16777216
	MaxStderrBytes *int32 `json:"maxStderrBytes,omitempty"`

	// maxProcesses is how many children of clients a pod runs, beside the one
	// that answers lists; of sharing PerClient. One that no call uses makes room
	// for another client's. Defaults to 20.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxProcesses *int32 `json:"maxProcesses,omitempty"`

	// idleSeconds is after how long without a call the child of a client ends;
	// of sharing PerClient. Defaults to 300.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	IdleSeconds *int32 `json:"idleSeconds,omitempty"`
}
