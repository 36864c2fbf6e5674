// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const defaultMaxTools = 100

// Upstream is what one of spec.upstreams comes to.
type Upstream struct {
	Name string
	// Config of it; nil when it cannot be used.
	Config *serverconfig.Upstream
	// Refs are the Secrets and ConfigMaps that it needs, sorted.
	Refs []Ref
	// Verdict says why it cannot be used.
	Verdict Verdict
}

// ResolveUpstreams resolves spec.upstreams of server. lookup gives an
// MCPServer of its namespace, nil where there is none; address gives the URL
// of one that has pods.
func ResolveUpstreams(server *mcpv1.MCPServer, lookup func(name string) *mcpv1.MCPServer, address func(*mcpv1.MCPServer) string) []Upstream {
	var out []Upstream
	if server.Spec.Stdio != nil {
		out = append(out, Upstream{
			Name: serverconfig.StdioUpstream, Verdict: Verdict{Accepted: true},
			Config: &serverconfig.Upstream{Name: serverconfig.StdioUpstream, Stdio: stdio(server)},
		})
	}
	for i := range server.Spec.Upstreams {
		u := &server.Spec.Upstreams[i]
		resolved := Upstream{Name: u.Name, Verdict: Verdict{Accepted: true}}
		connection := &mcpv1.Connection{URL: u.URL, Headers: u.Headers, Auth: u.Auth, TLS: u.TLS}
		switch {
		case u.ServerRef != nil:
			connection, resolved.Verdict = dereference(server, u.ServerRef.Name, lookup, address)
		case u.OpenAPI != nil:
			connection = &mcpv1.Connection{URL: u.OpenAPI.URL, Headers: u.OpenAPI.Headers, Auth: u.OpenAPI.Auth, TLS: u.OpenAPI.TLS}
		}
		if resolved.Verdict.Accepted && connection.Auth != nil && connection.Auth.OAuthTokenExchange != nil && !knowsTokens(server) {
			resolved.Verdict = refused(mcpv1.ReasonInvalidAuth,
				"It exchanges the caller's own token (auth.oauthTokenExchange), and callers here have none. Set spec.auth.jwt or spec.auth.serviceAccounts.")
		}
		if resolved.Verdict.Accepted {
			resolved.Config = upstreamConfig(u, connection)
			resolved.Refs = SortRefs(append(ConnectionRefs(connection), documentRefs(u.OpenAPI)...))
		}
		out = append(out, resolved)
	}
	return out
}

// dereference gives the connection to the MCPServer of this name: what it
// inherits is the server's own, never that of its probe.
func dereference(server *mcpv1.MCPServer, name string, lookup func(string) *mcpv1.MCPServer, address func(*mcpv1.MCPServer) string) (*mcpv1.Connection, Verdict) {
	if name == server.Name {
		return nil, refused(mcpv1.ReasonUpstreamCycle, "MCPServer %s is its own upstream.", name)
	}
	target := lookup(name)
	switch {
	case target == nil:
		return nil, refused(mcpv1.ReasonServerNotFound, "MCPServer %s does not exist. Create it in this namespace.", name)
	case reaches(target, server.Name, lookup, map[string]bool{}):
		return nil, refused(mcpv1.ReasonUpstreamCycle, "MCPServer %s has MCPServer %s as an upstream in its turn. Break the circle.", name, server.Name)
	case needsCredential(target):
		return nil, refused(mcpv1.ReasonUpstreamAuthRequired, "MCPServer %s wants a credential and has none to inherit. Give it one by spec.external.headers or spec.external.auth, or use url with headers here.", name)
	case target.Spec.External != nil:
		return target.Spec.External, Verdict{Accepted: true}
	}
	return &mcpv1.Connection{URL: address(target), TLS: ClientTLS(target)}, Verdict{Accepted: true}
}

// reaches reports whether following serverRefs from server leads to name.
func reaches(server *mcpv1.MCPServer, name string, lookup func(string) *mcpv1.MCPServer, seen map[string]bool) bool {
	if seen[server.Name] {
		return false
	}
	seen[server.Name] = true
	for i := range server.Spec.Upstreams {
		ref := server.Spec.Upstreams[i].ServerRef
		if ref == nil {
			continue
		}
		if ref.Name == name {
			return true
		}
		if next := lookup(ref.Name); next != nil && reaches(next, name, lookup, seen) {
			return true
		}
	}
	return false
}

// needsCredential: the probe was refused without a credential, and there is
// none that could be inherited.
func needsCredential(target *mcpv1.MCPServer) bool {
	if e := target.Spec.External; e != nil && (len(e.Headers) > 0 || e.Auth != nil || e.TLS != nil && e.TLS.ClientCertificateRef != nil) {
		return false
	}
	return WantsCredential(target)
}

// WantsCredential reports whether server was found to want a credential that
// its probe does not have.
func WantsCredential(server *mcpv1.MCPServer) bool {
	c := meta.FindStatusCondition(server.Status.Conditions, mcpv1.ConditionHealthy)
	return c != nil && c.Reason == mcpv1.ReasonAuthRequired
}

func upstreamConfig(u *mcpv1.Upstream, c *mcpv1.Connection) *serverconfig.Upstream {
	out := &serverconfig.Upstream{
		Name: u.Name, Connection: connection(c), Protocol: serverconfig.Protocol(u.Protocol),
		When: u.When, Include: u.Include, Exclude: u.Exclude, Prefix: u.Prefix, Metadata: u.Metadata,
	}
	if u.OpenAPI != nil {
		out.OpenAPI = &serverconfig.OpenAPI{DocumentURL: u.OpenAPI.Document.URL}
		for _, r := range documentRefs(u.OpenAPI) {
			out.OpenAPI.DocumentFile = r.Path()
		}
	}
	return out
}

// documentRefs is the reference of a document in a ConfigMap, if it is there.
func documentRefs(o *mcpv1.UpstreamOpenAPI) []Ref {
	if o == nil || o.Document.ConfigMapKeyRef == nil {
		return nil
	}
	r, _ := keyRef(nil, o.Document.ConfigMapKeyRef)
	return []Ref{r}
}

// UpstreamOf says why the upstream that answers calls of a tool cannot be used;
// accepted where it can, or where none does.
func UpstreamOf(tool *Compiled, server string, upstreams []Upstream) Verdict {
	if tool.Tool == nil || tool.Tool.Upstream == nil {
		return Verdict{Accepted: true}
	}
	name := tool.Tool.Upstream.Upstream
	for _, u := range upstreams {
		if u.Name != name {
			continue
		}
		if !u.Verdict.Accepted {
			return refused(u.Verdict.Reason, "The upstream %s of MCPServer %s cannot be used: %s", name, server, u.Verdict.Message)
		}
		return Verdict{Accepted: true}
	}
	return refused(mcpv1.ReasonUpstreamNotFound, "MCPServer %s has no upstream %s. Name one of its spec.upstreams by spec.upstream.name.", server, name)
}

// AddUpstreams puts the upstreams that can be used into the catalog, with what
// is to be done with their tools.
func (c *Catalog) AddUpstreams(server *mcpv1.MCPServer, upstreams []Upstream) {
	for i, u := range server.Spec.Upstreams {
		if u.When == "" {
			continue
		}
		if _, err := expression.Compile(expression.Caller, u.When, expression.Bool); err != nil {
			c.object(mcpv1.ReasonInvalidUpstream, "spec.upstreams[%d].when: %v. The upstream serves nobody until it compiles.", i, err)
		}
	}
	for _, u := range upstreams {
		if u.Config != nil {
			c.Config.Upstreams = append(c.Config.Upstreams, *u.Config)
			c.Refs = append(c.Refs, u.Refs...)
		}
	}
	if len(c.Config.Upstreams) == 0 {
		return
	}
	c.Refs = SortRefs(c.Refs)
	c.Config.Require(serverconfig.FeatureUpstreams)
	if slices.ContainsFunc(c.Config.Upstreams, func(u serverconfig.Upstream) bool { return u.When != "" }) {
		c.Config.Require(serverconfig.FeatureUpstreamsWhen)
	}
	if server.Spec.Stdio != nil {
		c.Config.Require(serverconfig.FeatureStdio)
		if server.Spec.Stdio.Sharing == mcpv1.SharingPerClient {
			c.Config.Require(serverconfig.FeaturePerClient)
		}
	}
	if slices.ContainsFunc(c.Config.Upstreams, func(u serverconfig.Upstream) bool { return u.OpenAPI != nil }) {
		c.Config.Require(serverconfig.FeatureOpenAPI)
	}
	c.addContract(server)
	c.Config.Policy = toolsPolicy(server.Spec.Tools)
	for _, list := range c.reserved {
		slices.Sort(list)
	}
	c.Config.Policy.Reserved, c.Config.Policy.ReservedPrompts = c.reserved[Tools], c.reserved[Prompts]
	c.Config.Policy.ReservedResources = slices.Concat(c.reserved[Resources], c.reserved[Templates])
	c.requireAuth()
}

// Defaults of a child.
const (
	defaultStartup     = 120
	defaultHandshake   = 10
	defaultStderrBytes = 64 << 10
	defaultProcesses   = 20
	defaultIdle        = 300
)

func stdio(server *mcpv1.MCPServer) *serverconfig.Stdio {
	in := server.Spec.Stdio
	out := &serverconfig.Stdio{
		Command: slices.Concat(in.Command, in.Args), WorkingDir: in.WorkingDir, StartupTimeoutSeconds: defaultStartup,
		HandshakeTimeoutSeconds: defaultHandshake, MaxMessageBytes: defaultMaxMessageBytes, MaxStderrBytes: defaultStderrBytes,
	}
	set(&out.StartupTimeoutSeconds, server.Spec.StartupTimeoutSeconds)
	for _, ask := range in.Forward {
		out.Forward = append(out.Forward, serverconfig.Ask(ask))
	}
	if out.Forward == nil {
		out.Forward = []serverconfig.Ask{serverconfig.AskElicitation}
	}
	slices.Sort(out.Forward)
	if in.Sharing == mcpv1.SharingPerClient {
		out.PerClient, out.MaxProcesses, out.IdleSeconds = true, defaultProcesses, defaultIdle
	}
	if l := in.Limits; l != nil {
		set(&out.HandshakeTimeoutSeconds, l.HandshakeTimeoutSeconds)
		set(&out.MaxMessageBytes, l.MaxMessageBytes)
		set(&out.MaxStderrBytes, l.MaxStderrBytes)
		set(&out.MaxProcesses, l.MaxProcesses)
		set(&out.IdleSeconds, l.IdleSeconds)
	}
	named := in.Env
	if w := server.Spec.Workload; w != nil {
		named = slices.Concat(named, w.Env)
	}
	for _, e := range named {
		out.Env = append(out.Env, e.Name)
	}
	slices.Sort(out.Env)
	out.Env = slices.Compact(out.Env)
	return out
}

func toolsPolicy(in *mcpv1.ToolsPolicy) *serverconfig.ToolsPolicy {
	out := &serverconfig.ToolsPolicy{Max: defaultMaxTools, Conflicts: string(mcpv1.ConflictOldest)}
	if in == nil {
		return out
	}
	set(&out.Max, in.Max)
	out.Include, out.Exclude, out.Filter = in.Include, in.Exclude, in.Filter
	if in.ConflictPolicy != "" {
		out.Conflicts = string(in.ConflictPolicy)
	}
	for _, o := range in.Overrides {
		override := serverconfig.Override{Name: o.Name, Rename: o.Rename, Title: o.Title, Description: o.Description, Metadata: o.Metadata}
		if o.Annotations != nil {
			// Booleans and a text: it cannot fail.
			override.Annotations, _ = json.Marshal(o.Annotations)
		}
		out.Overrides = append(out.Overrides, override)
	}
	return out
}
