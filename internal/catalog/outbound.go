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
	if c.Auth == nil {
		return nil
	}
	in := &c.Auth.OAuthClientCredentials
	client := serverconfig.OAuthClient{
		TokenURL: in.TokenURL, ClientID: in.ClientID, SecretFile: secretOf(c.Auth).Path(),
		Scopes: in.Scopes, Audience: in.Audience, Resource: in.Resource,
	}
	tls, added := TokenTLS(c)
	if client.TLS = connectionTLS(tls); client.TLS != nil {
		client.TLS.System = added
	}
	out := &serverconfig.OutboundAuth{ClientCredentials: &client}
	if exchange := c.Auth.OAuthTokenExchange; exchange != nil {
		out.Exchange = &serverconfig.TokenExchange{OAuthClient: client, SubjectType: oauth.TypeAccessToken}
		out.Exchange.Scopes, out.Exchange.Audience, out.Exchange.Resource = exchange.Scopes, exchange.Audience, exchange.Resource
		if exchange.SubjectTokenType == mcpv1.SubjectJWT {
			out.Exchange.SubjectType = oauth.TypeJWT
		}
	}
	return out
}

func secretOf(a *mcpv1.OutboundAuth) Ref {
	r := &a.OAuthClientCredentials.ClientSecretRef
	return Ref{Kind: RefSecret, Name: r.Name, Key: r.Key}
}

// TokenTLS is the TLS of the token endpoint of c.Auth: that of the connection
// where both have one origin. Elsewhere its authorities count beside the
// system's (added), and nothing else of it: a client certificate is meant for
// the connection alone.
func TokenTLS(c *mcpv1.Connection) (tls *mcpv1.ClientTLS, added bool) {
	switch {
	case c.TLS == nil || origin(c.Auth.OAuthClientCredentials.TokenURL) == origin(c.URL):
		return c.TLS, false
	case c.TLS.CA == nil:
		return nil, false
	}
	return &mcpv1.ClientTLS{CA: c.TLS.CA}, true
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
	return []Ref{secretOf(a)}
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
			"http.auth.oauthTokenExchange exchanges the caller's own token, and the callers of MCPServer %s have none. Set its spec.auth.jwt or spec.auth.serviceAccounts, or leave oauthTokenExchange out.", server.Name)
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
