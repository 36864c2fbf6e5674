// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Auth says who may call the server at all. A caller shows a bearer token or,
// for API keys, the header X-API-Key; whoever shows neither is answered 401.
// Which entries a caller sees is said by access.
//
// +kubebuilder:validation:XValidation:rule="has(self.jwt) || has(self.serviceAccounts) || has(self.apiKeys)",message="auth without jwt, serviceAccounts or apiKeys would let nobody in: set at least one"
type Auth struct {
	// jwt accepts tokens of an OAuth or OpenID Connect issuer.
	// +optional
	JWT *JWTAuth `json:"jwt,omitempty"`

	// serviceAccounts accepts tokens that this cluster makes for its service
	// accounts (projected volumes, "kubectl create token"). They are verified
	// by the cluster's public keys; no request to the API server is made.
	// +optional
	ServiceAccounts *ServiceAccountAuth `json:"serviceAccounts,omitempty"`

	// apiKeys accepts the values of a Secret.
	// +optional
	APIKeys *APIKeyAuth `json:"apiKeys,omitempty"`
}

// JWTAuth accepts tokens of one issuer.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.jwksURI) && has(self.jwks))",message="set at most one of jwksURI and jwks: without either, the issuer's own metadata says where its keys are"
// +kubebuilder:validation:XValidation:rule="!(has(self.tls) && has(self.jwks))",message="tls is for fetching the issuer's keys, and jwks gives them already: leave one out"
type JWTAuth struct {
	// issuer of the tokens: exactly their claim iss.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:_-]+(/[^?#\s]*)?$`
	Issuer string `json:"issuer,omitempty"`

	// audiences of which a token names at least one in its claim aud. A token
	// that was made for another service is refused.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Audiences []string `json:"audiences,omitempty"`

	// jwksURI is where the issuer's public keys are. By default the issuer's
	// metadata says it (/.well-known/openid-configuration, then
	// /.well-known/oauth-authorization-server).
	// +optional
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.\[\]:_-]+([/?][^#\s]*)?$`
	JWKSURI string `json:"jwksURI,omitempty"`

	// jwks are the public keys themselves, a JSON Web Key Set.
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=65536
	JWKS string `json:"jwks,omitempty"`

	// requiredScopes that each token carries in its claim scope (or scp). A
	// token without one of them is answered 403 insufficient_scope with all
	// of them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	RequiredScopes []string `json:"requiredScopes,omitempty"`

	// tls of the requests to the issuer and to jwksURI.
	// +optional
	TLS *ClientTLS `json:"tls,omitempty"`
}

// ServiceAccountAuth accepts tokens of this cluster's service accounts.
type ServiceAccountAuth struct {
	// audiences of which a token names at least one. Do not name the API
	// server's: what calls this server could then call that one.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	Audiences []string `json:"audiences,omitempty"`

	// subjects that may call, as Kubernetes names them
	// (system:serviceaccount:NAMESPACE:NAME). '*' is any run of characters,
	// '?' one. Absent is every service account of the cluster.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^system:serviceaccount:[a-z0-9*?-]+:[a-z0-9.*?-]+$`
	Subjects []string `json:"subjects,omitempty"`
}

// APIKeyAuth accepts the values of a Secret.
type APIKeyAuth struct {
	// secretRef names the Secret. Each of its keys is a caller's name
	// (principal.subject), the value is what that caller shows. Rotation is
	// live.
	// +required
	SecretRef SecretRef `json:"secretRef,omitempty,omitzero"`
}

// SecretRef names a whole Secret in the same namespace.
//
// +kubebuilder:validation:XValidation:rule="!has(self.namespace)",message="a reference stays in its own namespace: leave out namespace and create the Secret beside this object"
type SecretRef struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// namespace is refused; see SecretKeyRef.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
}

// AccessDefault says what happens to an entry that no rule of access matches.
//
// +kubebuilder:validation:Enum=Allow;Deny
type AccessDefault string

// What happens to an entry that no rule of access matches.
const (
	// AccessAllow: every caller sees and calls it.
	AccessAllow AccessDefault = "Allow"
	// AccessDeny: nobody does.
	AccessDeny AccessDefault = "Deny"
)

// AccessRule guards entries. All rules that match an entry must be true for a
// caller who is to see it in lists and to call it; to everybody else the
// entry does not exist.
type AccessRule struct {
	// tools that the rule guards: globs over their names ('*' any run of
	// characters, '?' one). A rule that names nothing guards every entry.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Tools []string `json:"tools,omitempty"`

	// resources that the rule guards: globs over their URIs. Of a template it
	// is both the text of the template and the URI that is read.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^\S+$`
	Resources []string `json:"resources,omitempty"`

	// prompts that the rule guards: globs over their names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Prompts []string `json:"prompts,omitempty"`

	// when is CEL over principal (kind, subject, scopes, claims) and tool
	// (name, title, description, annotations, metadata, source), which is the
	// entry, of any kind. Absent keys of principal read as null. An entry for
	// which it cannot be evaluated is hidden from that caller.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`
}

// LimitRule limits calls of some tools by some callers.
//
// +kubebuilder:validation:XValidation:rule="has(self.requestsPerSecond) || has(self.budget)",message="a rule without requestsPerSecond and budget limits nothing: set one"
type LimitRule struct {
	// tools that the rule is about: globs over their names. Absent is all.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_.*?-]+$`
	Tools []string `json:"tools,omitempty"`

	// when is CEL over principal and tool, as in access. Absent is always; a
	// call for which it cannot be evaluated is limited.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	When string `json:"when,omitempty"`

	// requestsPerSecond of all calls that the rule is about together, per
	// replica. Twice as many may come at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	RequestsPerSecond *int32 `json:"requestsPerSecond,omitempty"`

	// budget of each caller for the calls that the rule is about.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
}

// Budget is how many calls one caller has in a window of time, per replica.
// The window begins with the caller's first call in it.
type Budget struct {
	// calls in a window.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Calls int32 `json:"calls,omitempty"`

	// windowSeconds is how long a window is.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2678400
	WindowSeconds int32 `json:"windowSeconds,omitempty"`
}
