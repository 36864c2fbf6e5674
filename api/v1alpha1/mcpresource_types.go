// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MCPResource is one resource, or one template of resources, that MCPServers
// of its namespace serve: what clients see of it and where its content comes
// from.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=mcpr,categories=mcp
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="URI",type=string,JSONPath=`.status.uri`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Servers",type=integer,JSONPath=`.status.serverCount`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Served",type=string,JSONPath=`.status.conditions[?(@.type=="Served")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Served")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type MCPResource struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +required
	Spec MCPResourceSpec `json:"spec,omitempty,omitzero"`

	// status is what was observed.
	// +optional
	// +default={"observedGeneration":-1}
	Status MCPResourceStatus `json:"status,omitempty,omitzero"`
}

// MCPResourceList is a list of MCPResources.
//
// +kubebuilder:object:root=true
type MCPResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MCPResource `json:"items"`
}

// MCPResourceSpec is what is wanted of a resource.
//
// +kubebuilder:validation:XValidation:rule="has(self.serverRefs) != has(self.serverSelector)",message="set exactly one of serverRefs and serverSelector: it says which MCPServers of this namespace serve the resource"
// +kubebuilder:validation:XValidation:rule="has(self.uri) != has(self.uriTemplate)",message="set exactly one of uri (one resource) and uriTemplate (one for each value of its variables)"
// +kubebuilder:validation:XValidation:rule="[has(self.text), has(self.blob), has(self.configMapKeyRef), has(self.secretKeyRef), has(self.expression), has(self.http)].filter(x, x).size() == 1",message="set exactly one of text, blob, configMapKeyRef, secretKeyRef, expression and http: it says where the content comes from"
// +kubebuilder:validation:XValidation:rule="!has(self.variables) || has(self.uriTemplate)",message="variables are those of uriTemplate: a uri has none"
type MCPResourceSpec struct {
	RegistrationSpec `json:",inline"`

	// uri of the resource, absolute.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9+.-]*:[^\\\\x00-\\\\x20\\\\x7f{}]+$')",message="a URI begins with a scheme, as in docs://runbooks/checkout, and has no spaces or braces"
	URI string `json:"uri,omitempty"`

	// uriTemplate is an RFC 6570 template, for example docs://runbooks/{service}.
	// {x} stands for one segment, {+x} for several, {?x,y} for a query; the
	// values are the variable args of expressions. It has no prefixes ({x:3})
	// and no lists ({x*}). An exact uri goes before a template.
	// +optional
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z][A-Za-z0-9+.-]*:[^\\\\x00-\\\\x20\\\\x7f]+$') && self.contains('{')",message="a URI template begins with a literal scheme, has no spaces, and at least one variable, as in docs://runbooks/{service}"
	URITemplate string `json:"uriTemplate,omitempty"`

	// variables of uriTemplate of which more is known.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Variables []TemplateVariable `json:"variables,omitempty"`

	// name on the wire. Defaults to metadata.name. It need not be unique.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Name string `json:"name,omitempty"`

	// title for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Title string `json:"title,omitempty"`

	// description tells a model what the resource is.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Description string `json:"description,omitempty"`

	// mimeType of the content. Without it an answer of http has its own, text
	// is text/plain, and all else application/octet-stream.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9.+-]+/[A-Za-z0-9.+*-]+(; ?[A-Za-z0-9-]+=[A-Za-z0-9._-]+)*$`
	MIMEType string `json:"mimeType,omitempty"`

	// icons for clients that show them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Icons []Icon `json:"icons,omitempty"`

	// annotations are hints for clients.
	// +optional
	Annotations *ResourceAnnotations `json:"annotations,omitempty"`

	// meta is the resource's _meta on the wire.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	Meta *JSON `json:"meta,omitempty"`

	// metadata classifies the resource and never reaches the wire. Resources
	// with entryPoint "true" are listed first.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 64 && self[k].size() <= 256)",message="a key has at most 64 characters, a value at most 256"
	Metadata map[string]string `json:"metadata,omitempty"`

	// text is the content.
	// +optional
	// +kubebuilder:validation:MaxLength=262144
	Text *string `json:"text,omitempty"` //nolint:kubeapilinter // An empty text is a text.

	// blob is the content in base64.
	// +optional
	// +kubebuilder:validation:MinLength=4
	// +kubebuilder:validation:MaxLength=349528
	// +kubebuilder:validation:Format=""
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$`
	Blob []byte `json:"blob,omitempty"` // Without a format: CEL would read it as base64 for URLs, and refuse '+' and '/'.

	// configMapKeyRef takes the content from a ConfigMap. Changes are live and
	// told to subscribers.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyRef `json:"configMapKeyRef,omitempty"`

	// secretKeyRef takes the content from a Secret, which whoever may read the
	// resource may see. Changes are live and told to subscribers.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`

	// expression makes the content by CEL over args (the template's variables)
	// and principal, with no backend.
	// +optional
	Expression *ResourceContent `json:"expression,omitempty"`

	// http takes the content from an HTTP endpoint by GET.
	// +optional
	HTTP *ResourceHTTP `json:"http,omitempty"`

	// cacheSeconds is for how long a client may keep what it read. Defaults
	// to 0. What is read is private to who read it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	CacheSeconds *int32 `json:"cacheSeconds,omitempty"`
}

// TemplateVariable is a variable of a URI template.
type TemplateVariable struct {
	// name in the template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+$`
	Name string `json:"name,omitempty"`

	// completions are values that are offered to who types one.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Completions []string `json:"completions,omitempty"`
}

// ResourceAnnotations are hints for clients, as MCP defines them.
//
// +kubebuilder:validation:MinProperties=1
type ResourceAnnotations struct {
	// audience that the content is for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Audience []Role `json:"audience,omitempty"`

	// priority from 0 (optional) to 1 (effectively required).
	// +optional
	// +kubebuilder:validation:Type=number
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:validation:Schemaless
	Priority *JSON `json:"priority,omitempty"`

	// lastModified is when the content was last changed.
	// +optional
	LastModified *metav1.Time `json:"lastModified,omitempty"`
}

// ResourceContent makes a resource's content by a CEL expression.
//
// +kubebuilder:validation:XValidation:rule="has(self.text) != has(self.blob)",message="set exactly one of text and blob"
type ResourceContent struct {
	// text is CEL that gives a string.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Text string `json:"text,omitempty"`

	// blob is CEL that gives bytes, or a string of base64.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	Blob string `json:"blob,omitempty"`
}

// ResourceHTTP takes a resource's content from an HTTP endpoint by GET. A
// {placeholder} in the URL's path takes the template's variable of that name
// as one percent-encoded segment; the remaining variables become the query.
// path and query replace the default for that part. Variables cannot change
// host, scheme or the path's structure.
//
// +kubebuilder:validation:XValidation:rule="!self.url.matches('[?].*[{}]')",message="placeholders belong in the URL's path: use http.query for the query"
// +kubebuilder:validation:XValidation:rule="!self.url.matches('[{][^{}/]*($|[{/])|[{][}]|(^|[}/])[^{}/]*[}]')",message="a placeholder is {name}, closed within its path segment"
// +kubebuilder:validation:XValidation:rule="!has(self.auth) || !has(self.headers) || self.headers.all(h, h.name.lowerAscii() != 'authorization')",message="auth sets the header Authorization: leave it out of headers"
type ResourceHTTP struct {
	Connection `json:",inline"`

	// path gives placeholders of the URL a value other than the variable of
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

	// result makes the content by CEL over args, principal and response
	// {status, headers, body}. By default it is the answer's body. A status
	// other than 2xx is an error in any case.
	// +optional
	Result *ResourceContent `json:"result,omitempty"`
}

// MCPResourceStatus is what was observed of a resource.
type MCPResourceStatus struct {
	RegistrationStatus `json:",inline"`

	// uri is the URI, or the URI template, on the wire.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	URI string `json:"uri,omitempty"`

	// source of the content: text, blob, configMap, secret, expression or http.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Source string `json:"source,omitempty"`
}
