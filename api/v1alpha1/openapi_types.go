// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UpstreamOpenAPI is an HTTP API whose OpenAPI document makes tools of its
// operations.
//
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || self.headers.all(h, !has(h.expression))",message="headers of an API cannot use expression, since its document is shared by all callers: use value, secretKeyRef or configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !has(self.headers) || self.headers.all(h, h.name.lowerAscii() != 'authorization')",message="auth sets the header Authorization: leave it out of headers"
type UpstreamOpenAPI struct {
	// document that describes the API: OpenAPI 3, JSON or YAML. References out
	// of it are never followed.
	// +required
	Document OpenAPIDocument `json:"document,omitzero"`

	// url that the paths of the document follow. Defaults to the document's
	// first server; with headers or tls that has to be of the same origin as
	// document.url.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="a URL begins with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/?#]*@')",message="a URL holds no user and password: use headers with a secretKeyRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="a URL to dial has no fragment"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[{}]')",message="the URL of an API has no placeholders: the paths of the document follow it"
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?].*)?$')",message="a URL has a literal host and, optionally, a port: placeholders belong in the path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f]')",message="a URL has no spaces or control characters"
	URL string `json:"url,omitempty"`

	// headers of each request to the API, and of those for the document when
	// that is of the same origin. They win over parameters of the document.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="two headers have one name: HTTP does not tell upper case from lower"
	Headers []Header `json:"headers,omitempty"`

	// auth asks an authorization server for the tokens of requests to the API,
	// and to the document when that is of the same origin.
	// +optional
	Auth *OutboundAuth `json:"auth,omitempty"`

	// tls of an https API, and of the document when that is of the same origin.
	// +optional
	TLS *ClientTLS `json:"tls,omitempty"`
}

// OpenAPIDocument is where a document comes from.
//
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.configMapKeyRef)",message="set exactly one of url and configMapKeyRef"
type OpenAPIDocument struct {
	// url to fetch the document from. It is asked for changes every 5 minutes.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="a URL begins with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/?#]*@')",message="a URL holds no user and password: use headers with a secretKeyRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="a URL to dial has no fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?].*)?$')",message="a URL has a literal host and, optionally, a port: placeholders belong in the path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f]')",message="a URL has no spaces or control characters"
	URL string `json:"url,omitempty"`

	// configMapKeyRef names the key of a ConfigMap with the document; changes
	// are live.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyRef `json:"configMapKeyRef,omitempty"`
}

// SkippedOperation is an operation of an OpenAPI document that is not served.
type SkippedOperation struct {
	// name that its tool would have, prefix included.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// reason says why.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
}
