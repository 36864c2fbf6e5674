// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPTool is one tool that MCPServers of its namespace serve: what clients
// see of it and how a call is answered.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcpt,categories=mcp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.status.toolName`
// +kubebuilder:printcolumn:name="Handler",type=string,JSONPath=`.status.handler`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.serverCount`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Served",type=string,JSONPath=`.status.conditions[?(@.type=="Served")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Served")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || self.metadata.name.size() <= 128",message="the tool's name on the wire has at most 128 characters: set spec.name"
type MCPTool struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +required
	Spec MCPToolSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPToolStatus `json:"status,omitempty,omitzero"`
}

// MCPToolList is a list of MCPTools.
//
// +kubebuilder:object:root=true
type MCPToolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPTool `json:"items"`
}

// MCPToolSpec is what is wanted of a tool.
//
// +kubebuilder:validation:XValidation:rule="has(self.serverRefs) != has(self.serverSelector)",message="set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the tool"
// +kubebuilder:validation:XValidation:rule="[has(self.http), has(self.expression), has(self.upstream)].filter(h, h).size() <= 1",message="set at most one of http, expression and upstream: a tool has one handler"
// +kubebuilder:validation:XValidation:rule="!has(self.expression) || has(self.expression.structured) || has(self.expression.text) || has(self.expression.content)",message="expression answers without a backend: set one of structured, text and content"
type MCPToolSpec struct {
	RegistrationSpec `json:",inline"`

	// name on the wire. Defaults to metadata.name. Widespread clients accept
	// at most 64 characters.
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

	// description tells a model what the tool does.
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

	// meta is the tool's _meta on the wire.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Meta *JSON `json:"meta,omitempty"`

	// inputSchema is the JSON Schema of the arguments, of type object, at
	// most 64 KiB. Defaults to any object.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	InputSchema *JSON `json:"inputSchema,omitempty"`

	// outputSchema is the JSON Schema of the structured answer, at most 64 KiB.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	OutputSchema *JSON `json:"outputSchema,omitempty"`

	// annotations are hints for clients.
	// +optional
	Annotations *ToolAnnotations `json:"annotations,omitempty"`

	// metadata classifies the tool for filters, order and accounting, and
	// never reaches the wire. Tools with entryPoint "true" are listed first;
	// costCategory is a label of the call metrics.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && self[k].size() <= 256)",message="a key has at most 64 characters, a value at most 256"
	Metadata map[string]string `json:"metadata,omitempty"`

	// http answers a call by calling an HTTP endpoint.
	// +optional
	HTTP *HTTPHandler `json:"http,omitempty"`

	// expression answers a call by CEL over args and principal, with no backend.
	// +optional
	Expression *Result `json:"expression,omitempty"`

	// upstream answers a call by a call of one tool of an upstream of the
	// server, under this name and with this schema. The tool is listed under
	// its own name as well, unless the upstream's exclude leaves it out.
	// +optional
	Upstream *UpstreamHandler `json:"upstream,omitempty"`
}

// UpstreamHandler answers a call by a tool of an upstream.
type UpstreamHandler struct {
	// name of the upstream, in spec.upstreams of each server that serves the
	// tool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// tool by the upstream's own name, without a prefix.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Tool string `json:"tool,omitempty"`
}

// ToolAnnotations are hints for clients, as MCP defines them.
//
// +kubebuilder:validation:MinProperties=1
type ToolAnnotations struct {
	// title for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// readOnlyHint says that the tool changes nothing.
	// +optional
	ReadOnlyHint *bool `json:"readOnlyHint,omitempty"`

	// destructiveHint says that the tool may destroy something.
	// +optional
	DestructiveHint *bool `json:"destructiveHint,omitempty"`

	// idempotentHint says that a second call with the same arguments adds nothing.
	// +optional
	IdempotentHint *bool `json:"idempotentHint,omitempty"`

	// openWorldHint says that the tool deals with things outside of a closed domain.
	// +optional
	OpenWorldHint *bool `json:"openWorldHint,omitempty"`
}

// HTTPMethod is a method of HTTP.
//
// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
type HTTPMethod string

// HTTPHandler answers a call by calling an HTTP endpoint. A {placeholder} in
// the URL's path takes the argument of that name as one percent-encoded
// segment; the remaining arguments become the query (GET, HEAD, DELETE) or
// the JSON body (POST, PUT, PATCH). path, query, headers and body replace the
// default for that part. Arguments cannot change host, scheme or the path's
// structure.
//
// +kubebuilder:validation:XValidation:rule="!self.url.matches('[?].*[{}]')",message="placeholders belong in the URL's path: use http.query for the query"
// +kubebuilder:validation:XValidation:rule="!self.url.matches('[{][^{}/]*($|[{/])|[{][}]|(^|[}/])[^{}/]*[}]')",message="a placeholder is {name}, closed within its path segment"
// +kubebuilder:validation:XValidation:rule="!has(self.retries) || self.retries == 0 || self.method in ['GET', 'HEAD', 'PUT', 'DELETE']",message="retries are for idempotent methods: GET, HEAD, PUT and DELETE"
// +kubebuilder:validation:XValidation:rule="!has(self.body) || self.method in ['POST', 'PUT', 'PATCH', 'DELETE']",message="body is for POST, PUT, PATCH and DELETE"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !has(self.headers) || self.headers.all(h, h.name.lowerAscii() != 'authorization')",message="auth sets the header Authorization: leave it out of headers"
type HTTPHandler struct {
	Connection `json:",inline"`

	// method of the request.
	// +required
	Method HTTPMethod `json:"method,omitempty"`

	// path gives placeholders of the URL a value other than the argument of
	// their name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Path []Parameter `json:"path,omitempty"`

	// query replaces the default query.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Query []Parameter `json:"query,omitempty"` //nolint:kubeapilinter // An empty list takes the query away.

	// body replaces the default body.
	// +optional
	Body *HTTPBody `json:"body,omitempty"`

	// timeoutSeconds bounds one attempt. Defaults to 30.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// retries after a failed attempt (no answer, 429, 502, 503, 504).
	// Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=5
	Retries *int32 `json:"retries,omitempty"`

	// result makes the answer by CEL over args, principal and response
	// {status, headers, body}. By default a JSON answer becomes structured
	// content and its text, text becomes text, an image an image; a status of
	// 400 or more is an error with the status.
	// +optional
	Result *Result `json:"result,omitempty"`
}

// HTTPBody makes a request's body.
type HTTPBody struct {
	// expression is CEL over args and principal.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Expression string `json:"expression,omitempty"`

	// mediaType of the body. application/json (the default) encodes the
	// expression's value, application/x-www-form-urlencoded takes a map, any
	// other a string or bytes.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+(; ?charset=[A-Za-z0-9-]+)?$`
	MediaType string `json:"mediaType,omitempty"`
}

// MCPToolStatus is what was observed of a tool.
type MCPToolStatus struct {
	RegistrationStatus `json:",inline"`

	// toolName is the name on the wire.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	ToolName string `json:"toolName,omitempty"`

	// handler that answers calls: http, expression, upstream or none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Handler string `json:"handler,omitempty"`
}
