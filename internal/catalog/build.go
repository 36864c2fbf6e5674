// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"context"
	"path"
	"slices"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Catalog is what one MCPServer serves, and a verdict on each registration.
type Catalog struct {
	// Server is the verdict on the server's own part of it: tools.filter,
	// auth, access, limits, extensions.
	Server Verdict
	// Config is the catalog file. It is made in any case: a filter that does
	// not compile hides every tool.
	Config *serverconfig.Config
	// Verdicts on all registrations.
	Verdicts map[ID]Verdict
	// Served are the accepted registrations.
	Served map[ID]*Compiled
	// Drifted are declared tools that spec.contract hides, as they are, by name.
	Drifted map[string]contract.Tool
	// Refs of the accepted registrations, the upstreams and auth, sorted.
	Refs []Ref
	// reserved are the identities that conflicting entries hide from one
	// another, by list.
	reserved map[List][]string
}

// Build joins the registrations that name server. Their order does not matter.
func Build(server *mcpv1.MCPServer, registrations []*Compiled, trust serverconfig.ProbeTrust) *Catalog {
	c := &Catalog{
		Server:   accepted(mcpv1.ReasonAccepted, "The spec is sound."),
		Verdicts: make(map[ID]Verdict, len(registrations)),
		Served:   make(map[ID]*Compiled, len(registrations)),
		reserved: map[List][]string{},
		Config: &serverconfig.Config{
			Version:        serverconfig.Version,
			Server:         serverInfo(server),
			Transports:     Transports(server),
			AllowedOrigins: allowedOrigins(server),
			CacheSeconds:   defaultCacheSeconds,
			Limits:         limits(server),
			Sessions:       sessions(server),
			Probe:          trust,
		},
	}
	set(&c.Config.CacheSeconds, server.Spec.CacheSeconds)
	if slices.ContainsFunc(c.Config.Transports, func(t serverconfig.Transport) bool { return t.Type != serverconfig.TransportStreamableHTTP }) {
		c.Config.Requires = append(c.Config.Requires, serverconfig.FeatureTransports)
	}
	c.secure(server)
	c.serveTLS(server)
	if p := server.Spec.Tools; p != nil && p.Retrieve != nil && *p.Retrieve {
		c.Config.Retrieve = true
		c.Config.Require(serverconfig.FeatureRetrieve)
	}
	candidates := c.admit(server, registrations)
	c.resolveConflicts(server, candidates)
	c.holdToContract(server)
	for _, t := range c.Served {
		c.list(t)
		c.Refs = append(c.Refs, t.Refs...)
	}
	slices.SortFunc(c.Config.Tools, func(a, b serverconfig.Tool) int { return cmp.Compare(a.Name, b.Name) })
	byURI := func(a, b serverconfig.Resource) int { return cmp.Compare(a.URI, b.URI) }
	slices.SortFunc(c.Config.Resources, byURI)
	slices.SortFunc(c.Config.Templates, byURI)
	slices.SortFunc(c.Config.Prompts, func(a, b serverconfig.Prompt) int { return cmp.Compare(a.Name, b.Name) })
	c.Refs = SortRefs(c.Refs)
	c.requireAuth()
	return c
}

// list puts what is served into its list.
func (c *Catalog) list(t *Compiled) {
	switch t.List {
	case Tools:
		c.Config.Tools = append(c.Config.Tools, *t.Tool)
		if t.Tool.Upstream != nil {
			c.Config.Require(serverconfig.FeatureUpstreamHandler)
		}
	case Resources:
		c.Config.Resources = append(c.Config.Resources, *t.Resource)
	case Templates:
		c.Config.Templates = append(c.Config.Templates, *t.Resource)
	case Prompts:
		c.Config.Prompts = append(c.Config.Prompts, *t.Prompt)
	}
}

// admit gives the registrations that are sound, switched on and not filtered
// out.
func (c *Catalog) admit(server *mcpv1.MCPServer, registrations []*Compiled) []*Compiled {
	keep := c.filter(server)
	var out []*Compiled
	for _, t := range registrations {
		v := t.Verdict
		switch {
		case t.Suspended:
			v = refused(mcpv1.ReasonSuspended, "spec.suspend is true: the %s is hidden.", t.ID.Kind.noun())
		case v.Accepted && t.List == Tools:
			if f := keep(t); !f.Accepted {
				v = f
			}
		}
		if x := exchanges(server, t); v.Accepted && !x.Accepted {
			v = x
		}
		c.Verdicts[t.ID] = v
		if v.Accepted {
			out = append(out, t)
		}
	}
	return out
}

// filter gives the test that include, exclude and filter of server make up.
// They are about tools.
func (c *Catalog) filter(server *mcpv1.MCPServer) func(*Compiled) Verdict {
	policy := server.Spec.Tools
	if policy == nil {
		policy = &mcpv1.ToolsPolicy{}
	}
	var program *expression.Program
	if policy.Filter != "" {
		p, err := expression.Compile(expression.Filter, policy.Filter, expression.Bool)
		if err != nil {
			c.object(mcpv1.ReasonInvalidFilter, "spec.tools.filter: %v No tool is served until it compiles.", err)
			return func(*Compiled) Verdict {
				return refused(mcpv1.ReasonFiltered, "spec.tools.filter of MCPServer %s does not compile, so no tool is served.", server.Name)
			}
		}
		program = p
	}
	return func(t *Compiled) Verdict {
		switch name := t.Name(); {
		case len(policy.Include) > 0 && !matches(policy.Include, name):
			return refused(mcpv1.ReasonFiltered, "spec.tools.include of MCPServer %s does not match %s.", server.Name, name)
		case matches(policy.Exclude, name):
			return refused(mcpv1.ReasonFiltered, "spec.tools.exclude of MCPServer %s matches %s.", server.Name, name)
		case program != nil:
			return judge(program, t, server.Name)
		default:
			return Verdict{Accepted: true}
		}
	}
}

func judge(program *expression.Program, t *Compiled, server string) Verdict {
	value, err := program.Eval(context.Background(), t.vars)
	if err != nil {
		return refused(mcpv1.ReasonFiltered, "spec.tools.filter of MCPServer %s cannot be evaluated for %s, which hides it: %v", server, t.Name(), err)
	}
	if keep, ok := value.(bool); !ok || !keep {
		return refused(mcpv1.ReasonFiltered, "spec.tools.filter of MCPServer %s leaves %s out.", server, t.Name())
	}
	return Verdict{Accepted: true}
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(glob string) bool {
		// The CRD admits no pattern that path.Match could refuse.
		ok, err := path.Match(glob, name)
		return err == nil && ok
	})
}

// resolveConflicts fills Served with one registration per identity and list
// at most.
func (c *Catalog) resolveConflicts(server *mcpv1.MCPServer, candidates []*Compiled) {
	policy := mcpv1.ConflictOldest
	if t := server.Spec.Tools; t != nil && t.ConflictPolicy != "" {
		policy = t.ConflictPolicy
	}
	slices.SortFunc(candidates, func(a, b *Compiled) int { return precedence(a, b, policy) })
	type identity struct {
		list List
		name string
	}
	groups := make(map[identity][]*Compiled, len(candidates))
	for _, t := range candidates {
		at := identity{t.List, t.Name()}
		groups[at] = append(groups[at], t)
	}
	for at, group := range groups {
		what, field := at.list.identity()
		if policy == mcpv1.ConflictHideAll && len(group) > 1 {
			c.reserved[at.list] = append(c.reserved[at.list], at.name)
			for i, t := range group {
				other := group[(i+1)%len(group)]
				c.Verdicts[t.ID] = refused(mcpv1.ReasonConflict,
					"%s has the %s %s too, and conflictPolicy HideAll of MCPServer %s hides both. Change %s of one.", other.ID, what, at.name, server.Name, field)
			}
			continue
		}
		winner := group[0]
		c.Served[winner.ID] = winner
		for _, t := range group[1:] {
			c.Verdicts[t.ID] = refused(mcpv1.ReasonConflict,
				"%s has the %s %s too and wins on MCPServer %s by conflictPolicy %s. Change %s of one, or delete one.", winner.ID, what, at.name, server.Name, policy, field)
		}
	}
}

// precedence orders candidates so that the winner comes first: by creation,
// then by name, as in Gateway API.
func precedence(a, b *Compiled, policy mcpv1.ConflictPolicy) int {
	age := a.Created.Compare(b.Created)
	if policy == mcpv1.ConflictNewest {
		age = -age
	}
	return cmp.Or(age, a.ID.Compare(b.ID))
}
