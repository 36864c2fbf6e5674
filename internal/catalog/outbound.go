// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/oauth"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

func outboundAuth(c *mcpv1.Connection) *serverconfig.OutboundAuth {
	in := c.Auth
	if in == nil {
		return nil
	}
	out := &serverconfig.OutboundAuth{}
	if client := in.OAuthClientCredentials; client != nil {
		mapped := oauthClient(c, &client.OAuthClient)
		out.ClientCredentials = &mapped
	}
	if exchange := in.OAuthTokenExchange; exchange != nil {
		out.Exchange = &serverconfig.TokenExchange{OAuthClient: oauthClient(c, &exchange.OAuthClient), SubjectType: oauth.TypeAccessToken}
		if exchange.SubjectTokenType == mcpv1.SubjectJWT {
			out.Exchange.SubjectType = oauth.TypeJWT
		}
	}
	return out
}

func oauthClient(c *mcpv1.Connection, in *mcpv1.OAuthClient) serverconfig.OAuthClient {
	return serverconfig.OAuthClient{
		TokenURL: in.TokenURL, ClientID: in.ClientID, SecretFile: secretOf(in).Path(),
		Scopes: in.Scopes, Audience: in.Audience, Resource: in.Resource, TLS: connectionTLS(TokenTLS(c, in)),
	}
}

func secretOf(in *mcpv1.OAuthClient) Ref {
	return Ref{Kind: RefSecret, Name: in.ClientSecretRef.Name, Key: in.ClientSecretRef.Key}
}

// TokenTLS is the TLS of client's token endpoint: its own, or that of the
// connection where both have one origin.
func TokenTLS(c *mcpv1.Connection, client *mcpv1.OAuthClient) *mcpv1.ClientTLS {
	if client.TLS == nil && origin(client.TokenURL) == origin(c.URL) {
		return c.TLS
	}
	return client.TLS
}

// origin of a URL that the API server accepted, in lower case and with its
// port.
func origin(url string) string {
	scheme, rest, _ := strings.Cut(strings.ToLower(url), "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if port := map[string]string{"http": ":80", "https": ":443"}[scheme]; !strings.HasSuffix(rest, port) && strings.LastIndexByte(rest, ':') <= strings.LastIndexByte(rest, ']') {
		rest += port
	}
	return scheme + "://" + rest
}

// OutboundRefs are the references of a.
func OutboundRefs(a *mcpv1.OutboundAuth) []Ref {
	if a == nil {
		return nil
	}
	var refs []Ref
	if client := a.OAuthClientCredentials; client != nil {
		refs = append(append(refs, secretOf(&client.OAuthClient)), TLSRefs(client.TLS)...)
	}
	if exchange := a.OAuthTokenExchange; exchange != nil {
		refs = append(append(refs, secretOf(&exchange.OAuthClient)), TLSRefs(exchange.TLS)...)
	}
	return refs
}

// knowsTokens reports whether callers of server show tokens that can be
// exchanged.
func knowsTokens(server *mcpv1.MCPServer) bool {
	a := server.Spec.Auth
	return a != nil && (a.JWT != nil || a.ServiceAccounts != nil)
}

// connectionAuth of the handler of a registration; nil for none.
func (c *Compiled) connectionAuth() *serverconfig.OutboundAuth {
	switch {
	case c.Tool != nil && c.Tool.HTTP != nil:
		return c.Tool.HTTP.Auth
	case c.Resource != nil && c.Resource.HTTP != nil:
		return c.Resource.HTTP.Auth
	}
	return nil
}

// exchanges refuses what exchanges tokens where callers have none.
func exchanges(server *mcpv1.MCPServer, t *Compiled) Verdict {
	if a := t.connectionAuth(); a != nil && a.Exchange != nil && !knowsTokens(server) {
		return refused(mcpv1.ReasonInvalidAuth,
			"http.auth.oauthTokenExchange exchanges the caller's own token, and the callers of MCPServer %s have none. Set its spec.auth.jwt or spec.auth.serviceAccounts, or use oauthClientCredentials.", server.Name)
	}
	return Verdict{Accepted: true}
}

// requireAuth notes the feature that connections with auth need.
func (c *Catalog) requireAuth() {
	needed := false
	for _, t := range c.Served {
		needed = needed || t.connectionAuth() != nil
	}
	for i := range c.Config.Upstreams {
		needed = needed || c.Config.Upstreams[i].Auth != nil
	}
	if needed {
		c.Config.Require(serverconfig.FeatureConnectionAuth)
	}
}
