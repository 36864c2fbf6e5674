// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OutboundAuth says by which tokens of an authorization server requests show
// who makes them.
type OutboundAuth struct {
	// oauthClientCredentials is the client that tokens are asked for, and that
	// requests are made as (RFC 6749, 4.4).
	// +required
	OAuthClientCredentials OAuthClientCredentials `json:"oauthClientCredentials,omitempty,omitzero"`

	// oauthTokenExchange makes calls as their caller: the client exchanges the
	// caller's own verified token for another one (RFC 8693). It needs auth.jwt
	// or auth.serviceAccounts of the MCPServer. What is nobody's call, such as
	// lists and probes, is made as the client.
	// +optional
	OAuthTokenExchange *OAuthTokenExchange `json:"oauthTokenExchange,omitempty"`
}

// OAuthClientCredentials is a client at an authorization server.
type OAuthClientCredentials struct {
	// tokenURL is the token endpoint. No redirect of it is followed. Its
	// certificate is trusted by the system's authorities and by the
	// connection's tls.ca; the rest of tls is for the connection's own origin.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][!"$-z|~]*)?$`
	TokenURL string `json:"tokenURL,omitempty"`

	// clientID of the client.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	ClientID string `json:"clientID,omitempty"`

	// clientSecretRef takes the client's secret from a Secret; rotation is
	// live.
	// +required
	ClientSecretRef SecretKeyRef `json:"clientSecretRef,omitempty,omitzero"`

	// scopes of the client's own tokens.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	Scopes []string `json:"scopes,omitempty"`

	// audience of the client's own tokens, as the authorization server names
	// it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	Audience string `json:"audience,omitempty"`

	// resource of the client's own tokens, a URI (RFC 8707).
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9+.-]*:[!"$-~]+$`
	Resource string `json:"resource,omitempty"`
}

// SubjectTokenType says what a caller's token is called at the token endpoint.
//
// +kubebuilder:validation:Enum=AccessToken;JWT
type SubjectTokenType string

// Types of subject tokens.
const (
	// SubjectAccessToken: urn:ietf:params:oauth:token-type:access_token.
	SubjectAccessToken SubjectTokenType = "AccessToken"
	// SubjectJWT: urn:ietf:params:oauth:token-type:jwt.
	SubjectJWT SubjectTokenType = "JWT"
)

// OAuthTokenExchange says what callers' tokens are exchanged for. At least the
// type of what they are is said.
type OAuthTokenExchange struct {
	// subjectTokenType is what the caller's token is called at the token
	// endpoint; those of service accounts are JWT.
	// +required
	SubjectTokenType SubjectTokenType `json:"subjectTokenType,omitempty"`

	// scopes of the tokens.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	Scopes []string `json:"scopes,omitempty"`

	// audience of the tokens.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	Audience string `json:"audience,omitempty"`

	// resource of the tokens, a URI (RFC 8707).
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9+.-]*:[!"$-~]+$`
	Resource string `json:"resource,omitempty"`
}
