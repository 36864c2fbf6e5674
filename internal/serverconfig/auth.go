// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package serverconfig

import "encoding/json"

// Auth says who may call. At least one of JWT, ServiceAccounts and APIKeys is
// set; what none of them accepts is refused.
type Auth struct {
	JWT             *JWT             `json:"jwt,omitempty"`
	ServiceAccounts *ServiceAccounts `json:"serviceAccounts,omitempty"`
	APIKeys         *APIKeys         `json:"apiKeys,omitempty"`
	// Resource is the URL of the MCP endpoint as clients write it: the
	// resource of the protected-resource metadata (RFC 9728).
	Resource string `json:"resource,omitempty"`
}

// JWT accepts tokens of one issuer.
type JWT struct {
	Issuer    string   `json:"issuer"`
	Audiences []string `json:"audiences"`
	// JWKSURI is where the keys are, JWKS the keys themselves; without both
	// the issuer's metadata is asked.
	JWKSURI        string          `json:"jwksURI,omitempty"`
	JWKS           json.RawMessage `json:"jwks,omitempty"`
	RequiredScopes []string        `json:"requiredScopes,omitempty"`
	TLS            *TLS            `json:"tls,omitempty"`
}

// ServiceAccounts accepts tokens of the cluster's service accounts.
type ServiceAccounts struct {
	// Issuer and JWKS are the cluster's own; without them every token is
	// refused.
	Issuer    string          `json:"issuer,omitempty"`
	JWKS      json.RawMessage `json:"jwks,omitempty"`
	Audiences []string        `json:"audiences"`
	// Subjects are globs; none is every service account.
	Subjects []string `json:"subjects,omitempty"`
}

// APIKeys accepts the values of a mounted Secret.
type APIKeys struct {
	// Secret is the name of the Secret and of its folder below the folder of
	// API keys.
	Secret string `json:"secret"`
}

// Access says which entries a caller sees and calls.
type Access struct {
	// DenyByDefault: an entry that no rule matches is nobody's.
	DenyByDefault bool         `json:"denyByDefault,omitempty"`
	Rules         []AccessRule `json:"rules,omitempty"`
}

// AccessRule guards the entries that it matches: When must be true.
type AccessRule struct {
	// Tools and Prompts are globs over names, Resources over URIs and the text
	// of templates. A rule that names nothing matches every entry of every
	// kind.
	Tools     []string `json:"tools,omitempty"`
	Resources []string `json:"resources,omitempty"`
	Prompts   []string `json:"prompts,omitempty"`
	// When is CEL over principal and tool, which is the entry of any kind.
	When string `json:"when"`
}

// LimitRule limits the calls that it matches.
type LimitRule struct {
	// Tools are globs over names; none is all.
	Tools []string `json:"tools,omitempty"`
	// When is CEL over principal and tool; empty is always.
	When string `json:"when,omitempty"`
	// RequestsPerSecond of all matching calls of a replica; 0 is no limit.
	RequestsPerSecond int32   `json:"requestsPerSecond,omitempty"`
	Budget            *Budget `json:"budget,omitempty"`
}

// Budget is how many calls a caller has in a window, per replica.
type Budget struct {
	Calls         int32 `json:"calls"`
	WindowSeconds int32 `json:"windowSeconds"`
}

// Extension is one declaration of an extension of the protocol.
type Extension struct {
	Name string `json:"name"`
	// Settings is an object.
	Settings json.RawMessage `json:"settings"`
	// Source says who declares it, for the log.
	Source string `json:"source,omitempty"`
}

// Require notes a feature that a server must have.
func (c *Config) Require(feature string) {
	for _, f := range c.Requires {
		if f == feature {
			return
		}
	}
	c.Requires = append(c.Requires, feature)
}
