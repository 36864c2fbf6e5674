// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// UpstreamProtocol says which era of the protocol an upstream is spoken to in.
//
// +kubebuilder:validation:Enum=Auto;Modern;Legacy
type UpstreamProtocol string

// Eras of an upstream.
const (
	// UpstreamAuto finds the era out.
	UpstreamAuto UpstreamProtocol = "Auto"
	// UpstreamModern: 2026-07-28, stateless.
	UpstreamModern UpstreamProtocol = "Modern"
	// UpstreamLegacy: the revisions that open with initialize.
	UpstreamLegacy UpstreamProtocol = "Legacy"
)

// Upstream is another MCP server whose tools, resources and prompts are served
// here, or an HTTP API whose operations are.
//
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.serverRef), has(self.openAPI)].filter(x, x).size() == 1",message="set exactly one of serverRef, url and openAPI"
// +kubebuilder:validation:XValidation:rule="has(self.url) || !(has(self.headers) || has(self.auth) || has(self.tls))",message="headers, auth and tls need url: a serverRef inherits those of the MCPServer it names, and openAPI has its own"
// +kubebuilder:validation:XValidation:rule="!(has(self.openAPI) && has(self.protocol))",message="an API speaks no protocol of MCP: leave out protocol"
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || self.headers.all(h, !has(h.expression))",message="headers of an upstream cannot use expression, since its connection is shared by all callers: use value, secretKeyRef or configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !has(self.headers) || self.headers.all(h, h.name.lowerAscii() != 'authorization')",message="auth sets the header Authorization: leave it out of headers"
type Upstream struct {
	// name of the upstream, unique in its server.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// serverRef names an MCPServer of this namespace. Of an External one its
	// headers, auth and tls are used too, never those of its probe.
	// +optional
	ServerRef *UpstreamServerRef `json:"serverRef,omitempty"`

	// openAPI describes an HTTP API whose operations become tools.
	// +optional
	OpenAPI *UpstreamOpenAPI `json:"openAPI,omitempty"`

	// url of the MCP endpoint of a server elsewhere: streamable HTTP, or the
	// older HTTP with SSE.
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="a URL begins with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/?#]*@')",message="a URL holds no user and password: use headers with a secretKeyRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="a URL to dial has no fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?].*)?$')",message="a URL has a literal host and, optionally, a port: placeholders belong in the path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f]')",message="a URL has no spaces or control characters"
	URL string `json:"url,omitempty"`

	// headers of each request to url.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="two headers have one name: HTTP does not tell upper case from lower"
	Headers []Header `json:"headers,omitempty"`

	// auth asks an authorization server for the tokens of requests to url.
	// +optional
	Auth *OutboundAuth `json:"auth,omitempty"`

	// tls of an https url.
	// +optional
	TLS *ClientTLS `json:"tls,omitempty"`

	// protocol is the era that is spoken. Defaults to Auto.
	// +optional
	Protocol UpstreamProtocol `json:"protocol,omitempty"`

	// when is CEL over principal (kind, subject, scopes, claims) that gives true
	// for the callers whom this upstream serves; absent is everybody. Of several
	// upstreams with an entry of one name that serve a caller,
	// tools.conflictPolicy chooses. One that cannot be evaluated serves nobody.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// prefix goes before the name of each tool, prompt, resource and template.
	// URIs stay as they are.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Prefix string `json:"prefix,omitempty"`

	// include keeps only tools, prompts, resources and templates whose own name
	// (without prefix) matches one of these globs ('*' any run of characters,
	// '?' one).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Include []string `json:"include,omitempty"`

	// exclude drops tools, prompts, resources and templates whose own name
	// matches one of these globs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Exclude []string `json:"exclude,omitempty"`

	// metadata classifies what it brings, as MCPTool's metadata does. It never
	// reaches the wire.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && self[k].size() <= 256)",message="a key has at most 64 characters, a value at most 256"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// UpstreamServerRef names an MCPServer of the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a reference stays in its own namespace: leave out namespace, or use url"
type UpstreamServerRef struct {
	// name of the MCPServer.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	Name string `json:"name,omitempty"`

	// namespace is refused; see SecretKeyRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ToolOverride changes one tool of an upstream.
//
// +kubebuilder:validation:XValidation:rule="has(self.rename) || has(self.title) || has(self.description) || has(self.annotations) || has(self.metadata)",message="an override changes something: set rename, title, description, annotations or metadata"
type ToolOverride struct {
	// name of the tool, its upstream's prefix included.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=192
	Name string `json:"name,omitempty"`

	// rename gives the tool another name, prefix included.
	// +optional
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]{1,128}$`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Rename string `json:"rename,omitempty"`

	// title replaces the tool's title.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// description replaces the tool's description.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Description string `json:"description,omitempty"`

	// annotations replace the tool's annotations, all of them.
	// +optional
	Annotations *ToolAnnotations `json:"annotations,omitempty"`

	// metadata is added to that of the upstream.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && self[k].size() <= 256)",message="a key has at most 64 characters, a value at most 256"
	Metadata map[string]string `json:"metadata,omitempty"`
}

// ObservedUpstream is an upstream as the pods see it.
type ObservedUpstream struct {
	// name of the upstream.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// state is Ready, Unavailable, Pending or Unresolved; that of the worst
	// replica.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	State string `json:"state,omitempty"`

	// reason says why it is not Ready.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// protocol version that is spoken.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Protocol string `json:"protocol,omitempty"`

	// tools of it that are served. Absent is unknown.
	// +optional
	Tools *int32 `json:"tools,omitempty"`

	// resources of it that are served, templates included. Absent is unknown.
	// +optional
	Resources *int32 `json:"resources,omitempty"`

	// prompts of it that are served. Absent is unknown.
	// +optional
	Prompts *int32 `json:"prompts,omitempty"`

	// skipped operations of its OpenAPI document are not served; some of them
	// are named in skippedOperations.
	// +optional
	Skipped *int32 `json:"skipped,omitempty"`

	// skippedOperations are the first of those that are not served, and why.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SkippedOperations []SkippedOperation `json:"skippedOperations,omitempty"`
}
