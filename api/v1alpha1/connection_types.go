// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SecretKeyRef names one key of a Secret in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a reference stays in its own namespace: leave out namespace and create the Secret beside this object"
type SecretKeyRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the Secret's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`

	// namespace is refused. It exists so that a reference across namespaces
	// is an error, not a silent look-up of the same name here.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// ConfigMapKeyRef names one key of a ConfigMap in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a reference stays in its own namespace: leave out namespace and create the ConfigMap beside this object"
type ConfigMapKeyRef struct {
	// name of the ConfigMap.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// key of the ConfigMap's data.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`

	// namespace is refused; see SecretKeyRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// CertificateRef names a Secret of type kubernetes.io/tls in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a reference stays in its own namespace: leave out namespace and create the Secret beside this object"
type CertificateRef struct {
	// name of the Secret; its keys tls.crt and tls.key are used.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// namespace is refused; see SecretKeyRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// Header is an HTTP header with its value from exactly one place.
//
// +kubebuilder:validation:XValidation:rule="[has(self.value), has(self.expression), has(self.secretKeyRef), has(self.configMapKeyRef)].filter(x, x).size() == 1",message="set exactly one of value, expression, secretKeyRef and configMapKeyRef"
// +kubebuilder:validation:XValidation:rule="!(self.name.lowerAscii() in ['host', 'content-length', 'transfer-encoding', 'connection', 'upgrade', 'te', 'trailer', 'keep-alive', 'proxy-connection', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name'])",message="this header belongs to the connection or the protocol and cannot be set"
type Header struct {
	// name of the header.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9!#$%&'*+.^_|~-]+$"
	Name string `json:"name,omitempty"`

	// prefix goes before the value, for example "Bearer ".
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[ -~]*$`
	Prefix string `json:"prefix,omitempty"`

	// value is literal. A credential does not belong here: use secretKeyRef.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[ -~]*$`
	Value *string `json:"value,omitempty"` //nolint:kubeapilinter // An empty value is a value.

	// expression is CEL over args and principal, evaluated at each call.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`

	// secretKeyRef takes the value from a Secret; rotation is live.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`

	// configMapKeyRef takes the value from a ConfigMap; changes are live.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyRef `json:"configMapKeyRef,omitempty"`
}

// Parameter is a named value of a URL: literal or by expression.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.expression)",message="set exactly one of value and expression"
type Parameter struct {
	// name of the parameter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// value is literal.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"` //nolint:kubeapilinter // An empty value is a value.

	// expression is CEL over args and principal. Null leaves the parameter out.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Expression string `json:"expression,omitempty"`
}

// CABundle is where PEM certificates come from.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretKeyRef) != has(self.configMapKeyRef)",message="set exactly one of secretKeyRef and configMapKeyRef"
type CABundle struct {
	// secretKeyRef names the key of a Secret with PEM certificates.
	// +optional
	SecretKeyRef *SecretKeyRef `json:"secretKeyRef,omitempty"`

	// configMapKeyRef names the key of a ConfigMap with PEM certificates.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyRef `json:"configMapKeyRef,omitempty"`
}

// ClientTLS says how a TLS peer is verified and how we identify ourselves.
//
// +kubebuilder:validation:MinProperties=1
type ClientTLS struct {
	// ca replaces the system's certificate authorities.
	// +optional
	CA *CABundle `json:"ca,omitempty"`

	// serverName replaces the URL's host in the check of the certificate.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServerName string `json:"serverName,omitempty"`

	// clientCertificateRef names a kubernetes.io/tls Secret to present.
	// +optional
	ClientCertificateRef *CertificateRef `json:"clientCertificateRef,omitempty"`
}

// Connection is how something is dialled: one shape wherever that happens.
// The URL is absolute, http or https, without credentials and fragment.
type Connection struct {
	// url to dial.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="a URL begins with http:// or https://"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^https?://[^/?#]*@')",message="a URL holds no user and password: use headers with a secretKeyRef"
	// +kubebuilder:validation:XValidation:rule="!self.contains('#')",message="a URL to dial has no fragment"
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?].*)?$')",message="a URL has a literal host and, optionally, a port: placeholders belong in the path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\x00-\\\\x20\\\\x7f]')",message="a URL has no spaces or control characters"
	URL string `json:"url,omitempty"`

	// headers of each request.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="two headers have one name: HTTP does not tell upper case from lower"
	Headers []Header `json:"headers,omitempty"`

	// auth asks an authorization server for the tokens of requests.
	// +optional
	Auth *OutboundAuth `json:"auth,omitempty"`

	// tls of an https URL.
	// +optional
	TLS *ClientTLS `json:"tls,omitempty"`
}
