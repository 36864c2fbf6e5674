// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

// FeatureConnectionAuth is required by a catalog with a Connection.Auth.
const FeatureConnectionAuth = "connection.auth"

// OutboundAuth says by which tokens requests of a connection show who makes
// them.
type OutboundAuth struct {
	// ClientCredentials gives the token of requests that are nobody's call,
	// and of calls where there is no Exchange; nil: those show none.
	ClientCredentials *OAuthClient `json:"clientCredentials,omitempty"`
	// Exchange gives the token of a call, for its caller.
	Exchange *TokenExchange `json:"exchange,omitempty"`
}

// OAuthClient is a client at an authorization server.
type OAuthClient struct {
	TokenURL string `json:"tokenURL"`
	ClientID string `json:"clientID"`
	// SecretFile is the client's secret, a path below the credentials folder.
	SecretFile string   `json:"secretFile"`
	Scopes     []string `json:"scopes,omitempty"`
	// Audience and Resource that tokens are to be for; empty for none.
	Audience string `json:"audience,omitempty"`
	Resource string `json:"resource,omitempty"`
	// TLS of the token endpoint; nil is the system's.
	TLS *TLS `json:"tls,omitempty"`
}

// TokenExchange is a client that exchanges callers' tokens.
type TokenExchange struct {
	OAuthClient
	// SubjectType is the URN of what the callers' tokens are.
	SubjectType string `json:"subjectType"`
}

// Files are the credential files of a TLS, in no order.
func (t *TLS) Files() []string {
	if t == nil {
		return nil
	}
	var out []string
	for _, path := range []string{t.CAFile, t.CertFile, t.KeyFile} {
		if path != "" {
			out = append(out, path)
		}
	}
	return out
}

// Files are the credential files of c but for those of its URL, in no order.
func (c *Connection) Files() []string {
	var out []string
	for _, v := range c.Headers {
		if v.File != "" {
			out = append(out, v.File)
		}
	}
	out = append(out, c.TLS.Files()...)
	if c.Auth == nil {
		return out
	}
	add := func(client *OAuthClient) { out = append(append(out, client.SecretFile), client.TLS.Files()...) }
	if client := c.Auth.ClientCredentials; client != nil {
		add(client)
	}
	if exchange := c.Auth.Exchange; exchange != nil {
		add(&exchange.OAuthClient)
	}
	return out
}

// Files are the credential files of u, and the document that it is read from,
// in no order.
func (u *Upstream) Files() []string {
	out := u.Connection.Files()
	if u.OpenAPI != nil && u.OpenAPI.DocumentFile != "" {
		out = append(out, u.OpenAPI.DocumentFile)
	}
	return out
}
