// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ProbeVia says which address of a server with pods is dialled.
//
// +kubebuilder:validation:Enum=Pods;Service
type ProbeVia string

const (
	// ProbeViaPods dials each pod by its IP, with the Service's name as Host.
	ProbeViaPods ProbeVia = "Pods"
	// ProbeViaService dials the Service, where a mesh or a policy forbids pod IPs.
	ProbeViaService ProbeVia = "Service"
)

// Probe is how the operator proves that a server works.
//
// +kubebuilder:validation:XValidation:rule="(has(self.timeoutSeconds) ? self.timeoutSeconds : 10) <= (has(self.intervalSeconds) ? self.intervalSeconds : 30)",message="timeoutSeconds (default 10) is at most intervalSeconds (default 30)"
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || self.headers.all(h, !has(h.expression))",message="probe.headers cannot use expression, which needs a call: use value, secretKeyRef or configMapKeyRef"
// +kubebuilder:validation:MinProperties=1
type Probe struct {
	// intervalSeconds between two probes of a replica. Defaults to 30.
	// +optional
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=3600
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`

	// timeoutSeconds bounds one probe. Defaults to 10.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// failureThreshold is how many probes fail before a replica counts as
	// failed. Defaults to 3.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	FailureThreshold *int32 `json:"failureThreshold,omitempty"`

	// via says which address is dialled. Defaults to Pods.
	// +optional
	Via ProbeVia `json:"via,omitempty"`

	// host replaces the Host header, for a server that accepts only certain
	// names.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=260
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9.\[\]:_-]+$`
	Host string `json:"host,omitempty"`

	// headers of the probe alone, for example a credential. What callers
	// send is not touched by it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="two headers have one name: HTTP does not tell upper case from lower"
	Headers []Header `json:"headers,omitempty"`

	// gateReadiness keeps a pod out of the Service until it was proved once.
	// +optional
	GateReadiness *bool `json:"gateReadiness,omitempty"`
}
