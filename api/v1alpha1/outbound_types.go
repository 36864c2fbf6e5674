// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// OutboundAuth says by which tokens requests of a connection show who makes
// them. A token stands in the header Authorization, is asked for when it is
// needed, kept until shortly before it expires, and asked for anew when the
// server answers 401.
//
// +kubebuilder:validation:MinProperties=1
type OutboundAuth struct {
	// oauthClientCredentials asks for tokens of this client itself (RFC 6749,
	// 4.4): every caller is the same to the server behind.
	// +optional
	OAuthClientCredentials *OAuthClientCredentials `json:"oauthClientCredentials,omitempty"`

	// oauthTokenExchange asks for a token for each caller (RFC 8693): the
	// caller's own verified token is the subject_token. It needs spec.auth.jwt
	// or spec.auth.serviceAccounts of the MCPServer that serves it; a caller
	// without a token is answered CredentialMissing. The caller's token itself
	// goes to the token endpoint and nowhere else.
	// +optional
	OAuthTokenExchange *OAuthTokenExchange `json:"oauthTokenExchange,omitempty"`
}

// OAuthClientCredentials is the client that tokens are asked for.
type OAuthClientCredentials struct {
	OAuthClient `json:",inline"`
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

// OAuthTokenExchange is the client that exchanges callers' tokens.
type OAuthTokenExchange struct {
	OAuthClient `json:",inline"`

	// subjectTokenType is what the caller's token is called at the token
	// endpoint. Defaults to AccessToken; tokens of service accounts are JWT.
	// +optional
	SubjectTokenType SubjectTokenType `json:"subjectTokenType,omitempty"`
}

// OAuthClient is a client at an authorization server.
type OAuthClient struct {
	// tokenURL is the token endpoint. No argument of a call changes it, and no
	// redirect of it is followed.
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
	// live. It is sent by HTTP Basic, or in the body where the endpoint does
	// not take that.
	// +required
	ClientSecretRef SecretKeyRef `json:"clientSecretRef,omitempty,omitzero"`

	// scopes that are asked for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[!#-\[\]-~]+$`
	Scopes []string `json:"scopes,omitempty"`

	// audience that the token is to be for, as the authorization server names
	// it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[ -~]+$`
	Audience string `json:"audience,omitempty"`

	// resource that the token is to be for, a URI (RFC 8707).
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9+.-]*:[!"$-~]+$`
	Resource string `json:"resource,omitempty"`

	// tls of the token endpoint. Defaults to that of the connection where both
	// have one origin, else to the system's certificate authorities.
	// +optional
	TLS *ClientTLS `json:"tls,omitempty"`
}
