// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"encoding/json"
	"net/url"
	"strings"
)

// WellKnown is where protected-resource metadata lies (RFC 9728, section 3).
const WellKnown = "/.well-known/oauth-protected-resource"

// metadata is the document. It exists when tokens of an issuer are accepted:
// only then is there somebody to ask for one.
type metadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	ResourceName         string   `json:"resource_name,omitempty"`
}

// MetadataURL is where clients find the metadata; empty without an issuer or
// without a URL of the resource.
func (a *Authenticator) MetadataURL() string {
	u := a.resource()
	if u == nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + WellKnown + strings.TrimSuffix(u.EscapedPath(), "/")
}

func (a *Authenticator) resource() *url.URL {
	if a == nil || a.config == nil || a.config.JWT == nil {
		return nil
	}
	u, err := url.Parse(a.config.Resource)
	if err != nil || u.Host == "" {
		return nil
	}
	return u
}

// Metadata gives the document for a request path, nil when there is none. It
// lies at the well-known path itself, at that of publicURL, and at that of
// each of paths, which are the server's own: behind an ingress that rewrites
// paths the two differ.
func (a *Authenticator) Metadata(path, name string, paths []string) []byte {
	u := a.resource()
	rest, ok := strings.CutPrefix(path, WellKnown)
	if u == nil || !ok {
		return nil
	}
	known := rest == "" || rest == "/" || rest == strings.TrimSuffix(u.Path, "/")
	for _, p := range paths {
		known = known || rest == p
	}
	if !known {
		return nil
	}
	raw, err := json.Marshal(metadata{
		Resource: a.config.Resource, AuthorizationServers: []string{a.config.JWT.Issuer},
		ScopesSupported: a.config.JWT.RequiredScopes, BearerMethods: []string{"header"}, ResourceName: name,
	})
	if err != nil {
		return nil // Plain data: it cannot fail.
	}
	return raw
}
