// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/jwks"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// secure maps who may do what: auth, access, limit rules, extensions. What is
// not sound stays in the catalog and is enforced to the safe side by the
// server: keys that cannot be read accept nobody, a rule that does not compile
// hides what it matches, or limits every caller. The verdict says so.
func (c *Catalog) secure(server *mcpv1.MCPServer) {
	spec := &server.Spec
	c.Config.Auth = c.auth(spec)
	c.Config.Access = c.access(spec)
	c.limitRules(spec.Limits)
	c.extensions(spec.Extensions)
	if c.Config.Auth != nil {
		c.Config.Require(serverconfig.FeatureAuth)
		c.Refs = append(c.Refs, AuthRefs(spec.Auth)...)
	}
	if c.Config.Access != nil {
		c.Config.Require(serverconfig.FeatureAccess)
	}
	if c.Config.Limits.Budget != nil || c.Config.Limits.Rules != nil {
		c.Config.Require(serverconfig.FeatureLimitRules)
	}
}

// object notes what is wrong with the server's own part; the first counts.
func (c *Catalog) object(reason, format string, args ...any) {
	if c.Server.Accepted {
		c.Server = refused(reason, format, args...)
	}
}

func (c *Catalog) auth(spec *mcpv1.MCPServerSpec) *serverconfig.Auth {
	in := spec.Auth
	if in == nil {
		return nil
	}
	out := &serverconfig.Auth{Resource: spec.PublicURL}
	if j := in.JWT; j != nil {
		out.JWT = &serverconfig.JWT{
			Issuer: j.Issuer, Audiences: j.Audiences, JWKSURI: j.JWKSURI, RequiredScopes: j.RequiredScopes, TLS: connectionTLS(j.TLS),
		}
		if j.JWKS != "" {
			out.JWT.JWKS = c.keySet(j.JWKS)
		}
	}
	if s := in.ServiceAccounts; s != nil {
		out.ServiceAccounts = &serverconfig.ServiceAccounts{Audiences: s.Audiences, Subjects: s.Subjects}
	}
	if k := in.APIKeys; k != nil {
		out.APIKeys = &serverconfig.APIKeys{Secret: k.SecretRef.Name}
	}
	return out
}

// noKeys is a set that accepts nobody.
var noKeys = json.RawMessage(`{"keys":[]}`)

func (c *Catalog) keySet(text string) json.RawMessage {
	if _, err := jwks.Parse([]byte(text)); err != nil {
		c.object(mcpv1.ReasonInvalidAuth, "spec.auth.jwt.jwks cannot be used: %v. Until it is corrected no token of this issuer is accepted.", err)
		return noKeys
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		return noKeys // It was parsed before: it is JSON.
	}
	return compact.Bytes()
}

func (c *Catalog) access(spec *mcpv1.MCPServerSpec) *serverconfig.Access {
	if len(spec.Access) == 0 && spec.AccessDefault != mcpv1.AccessDeny {
		return nil
	}
	out := &serverconfig.Access{DenyByDefault: spec.AccessDefault == mcpv1.AccessDeny}
	for i, rule := range spec.Access {
		if _, err := expression.Compile(expression.Access, rule.When, expression.Bool); err != nil {
			c.object(mcpv1.ReasonInvalidAccess, "spec.access[%d].when: %v. What the rule matches is hidden from everybody until it compiles.", i, err)
		}
		out.Rules = append(out.Rules, serverconfig.AccessRule{Tools: rule.Tools, Resources: rule.Resources, Prompts: rule.Prompts, When: rule.When})
	}
	return out
}

func (c *Catalog) limitRules(in *mcpv1.Limits) {
	if in == nil {
		return
	}
	c.Config.Limits.Budget = budget(in.Budget)
	for i, rule := range in.Rules {
		if rule.When != "" {
			if _, err := expression.Compile(expression.Access, rule.When, expression.Bool); err != nil {
				c.object(mcpv1.ReasonInvalidLimits, "spec.limits.rules[%d].when: %v. The rule limits every caller until it compiles.", i, err)
			}
		}
		out := serverconfig.LimitRule{Tools: rule.Tools, When: rule.When, Budget: budget(rule.Budget)}
		set(&out.RequestsPerSecond, rule.RequestsPerSecond)
		c.Config.Limits.Rules = append(c.Config.Limits.Rules, out)
	}
}

func budget(in *mcpv1.Budget) *serverconfig.Budget {
	if in == nil {
		return nil
	}
	return &serverconfig.Budget{Calls: in.Calls, WindowSeconds: in.WindowSeconds}
}

// Bounds of spec.extensions, which has no schema.
const (
	maxExtensions     = 32
	maxExtensionBytes = 16 << 10
	maxExtensionName  = 256
)

// extensionName is a prefix of labels, a slash and a name, as the keys of
// _meta are made.
var extensionName = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// extensions declares what is sound and names the first that is not.
func (c *Catalog) extensions(in *mcpv1.JSON) {
	if empty(in) {
		return
	}
	var declared map[string]json.RawMessage
	if err := json.Unmarshal(in.Raw, &declared); err != nil {
		c.object(mcpv1.ReasonInvalidExtensions, "spec.extensions is no object. Give an object for each name.")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if why := extensionProblem(name, declared[name]); why != "" {
			c.object(mcpv1.ReasonInvalidExtensions, "spec.extensions[%.100q] is not declared: %s.", name, why)
			continue
		}
		if len(c.Config.Extensions) == maxExtensions {
			c.object(mcpv1.ReasonInvalidExtensions, "spec.extensions has more than %d names; the rest is not declared.", maxExtensions)
			return
		}
		c.Config.Extensions = append(c.Config.Extensions, serverconfig.Extension{Name: name, Settings: declared[name], Source: "mcpserver"})
	}
}

func extensionProblem(name string, settings json.RawMessage) string {
	settings = bytes.TrimSpace(settings)
	switch {
	case len(name) > maxExtensionName || !extensionName.MatchString(name):
		return "a name is a domain of yours in any order, a slash and a word, such as com.example/notes"
	case strings.HasPrefix(name, "io.modelcontextprotocol/") && name != extensionUI:
		return "names of io.modelcontextprotocol/ belong to the specification, and declaring one would pretend what the server does not do"
	case len(settings) == 0 || settings[0] != '{':
		return "its value is no object"
	case len(settings) > maxExtensionBytes:
		return fmt.Sprintf("its value has %d bytes, at most %d are possible", len(settings), maxExtensionBytes)
	}
	return ""
}

// extensionUI needs nothing of a server but the tools' own _meta.
const extensionUI = "io.modelcontextprotocol/ui"

// Surroundings are facts of the cluster that a catalog needs and no spec has.
type Surroundings struct {
	// URL of the MCP endpoint in the cluster.
	URL string
	// Issuer and JWKS of service account tokens.
	Issuer string
	JWKS   json.RawMessage
}

// Surround adds the facts of the cluster. Without them the server names no
// resource and accepts no service account.
func (c *Catalog) Surround(s Surroundings) {
	a := c.Config.Auth
	if a == nil {
		return
	}
	if a.Resource == "" {
		a.Resource = s.URL
	}
	if a.ServiceAccounts != nil {
		a.ServiceAccounts.Issuer, a.ServiceAccounts.JWKS = s.Issuer, s.JWKS
	}
}

// AuthRefs are the references of a: the whole Secret of API keys has no key.
func AuthRefs(a *mcpv1.Auth) []Ref {
	if a == nil {
		return nil
	}
	var refs []Ref
	if a.JWT != nil {
		refs = append(refs, TLSRefs(a.JWT.TLS)...)
	}
	if a.APIKeys != nil {
		refs = append(refs, Ref{Kind: RefSecret, Name: a.APIKeys.SecretRef.Name})
	}
	return refs
}

// ProvesItself reports whether the probe has to show who it is to see
// everything that server serves.
func ProvesItself(server *mcpv1.MCPServer) bool {
	return server.Spec.Auth != nil || len(server.Spec.Access) > 0 || server.Spec.AccessDefault == mcpv1.AccessDeny
}
