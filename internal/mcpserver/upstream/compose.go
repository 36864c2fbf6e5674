// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/openapi"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Listing is what one upstream lists at present.
type Listing struct {
	*client.Lists
	Can client.Abilities
	// Left is what of an OpenAPI document is not served, or only in part.
	Left []openapi.Left
}

// Composed is a catalog with what its upstreams bring.
type Composed struct {
	// Config holds that beside what is declared.
	Config *serverconfig.Config
	// NotServed are entries of upstreams that are not served, and why. What
	// the owner left out by include, exclude or filter is not among them.
	NotServed []podreport.NotServed
	// Drift are pinned tools that are not what was promised.
	Drift []podreport.Drift
	// Flagged are those that are served and lack something of theirs.
	Flagged []podreport.NotServed
}

// candidate is an entry of an upstream under its final identity.
type candidate[E any] struct {
	id       string
	upstream *serverconfig.Upstream
	entry    E
}

// Kinds of entries, for the report.
const (
	kindTool     = "tool"
	kindResource = "resource"
	kindTemplate = "template"
	kindPrompt   = "prompt"
)

// Compose joins what listings hold, by the name of their upstream, to what is
// declared, in the order that the design fixes: an upstream's include and
// exclude, of its own names; prefix; of tools then overrides, which give final
// names, and include, exclude and filter of the server; conflicts; of tools
// contract and max. It does not change config.
func Compose(config *serverconfig.Config, listings map[string]Listing) Composed {
	out := Composed{Config: config}
	if len(config.Upstreams) == 0 {
		return out
	}
	c := newComposer(config)
	for i := range config.Upstreams {
		u := &config.Upstreams[i]
		listing, ok := listings[u.Name]
		if !ok {
			continue
		}
		c.tools = append(c.tools, c.adaptTools(u, listing.Tools)...)
		c.leave(u, listing.Left)
		c.resources = append(c.resources, c.adaptResources(u, kindResource, "uri", listing.Resources)...)
		c.templates = append(c.templates, c.adaptResources(u, kindTemplate, "uriTemplate", listing.Templates)...)
		c.prompts = append(c.prompts, c.adaptPrompts(u, listing.Prompts)...)
	}
	joined := *config
	c.tools = resolve(c, kindTool, c.filter(c.tools), idsOf(config.Tools, builtIn(config, c.policy.Reserved), func(t *serverconfig.Tool) string { return t.Name }))
	drift := c.hold(config, listings)
	c.tools = c.cut(c.tools)
	joined.Tools = join(c, guard(config), c.tools)
	uri := func(r *serverconfig.Resource) string { return r.URI }
	c.resources = resolve(c, kindResource, c.resources, idsOf(config.Resources, c.policy.ReservedResources, uri))
	joined.Resources = join(c, config.Resources, c.resources)
	c.templates = resolve(c, kindTemplate, c.templates, idsOf(config.Templates, c.policy.ReservedResources, uri))
	joined.Templates = join(c, config.Templates, c.templates)
	c.prompts = resolve(c, kindPrompt, c.prompts, idsOf(config.Prompts, c.policy.ReservedPrompts, func(p *serverconfig.Prompt) string { return p.Name }))
	joined.Prompts = join(c, config.Prompts, c.prompts)
	joined.Readers = c.readers(config, listings)
	joined.CacheSeconds, joined.CacheScope = caching(config, listings)
	return Composed{Config: &joined, NotServed: c.notServed, Flagged: c.flagged, Drift: drift}
}

// composer is one composition in the making.
type composer struct {
	policy    *serverconfig.ToolsPolicy
	overrides map[string]*serverconfig.Override
	notServed []podreport.NotServed
	flagged   []podreport.NotServed

	tools                []candidate[serverconfig.Tool]
	resources, templates []candidate[serverconfig.Resource]
	prompts              []candidate[serverconfig.Prompt]
}

func newComposer(config *serverconfig.Config) *composer {
	c := &composer{policy: config.Policy, overrides: map[string]*serverconfig.Override{}}
	if c.policy == nil {
		c.policy = &serverconfig.ToolsPolicy{}
	}
	for i := range c.policy.Overrides {
		c.overrides[c.policy.Overrides[i].Name] = &c.policy.Overrides[i]
	}
	return c
}

func (c *composer) refuse(kind, name, reason string) {
	c.notServed = append(c.notServed, podreport.NotServed{Kind: kind, Name: name, Reason: reason})
}

// leave names what was left out of a document.
func (c *composer) leave(u *serverconfig.Upstream, left []openapi.Left) {
	for _, l := range left {
		to := &c.notServed
		if l.Served {
			to = &c.flagged
		}
		*to = append(*to, podreport.NotServed{Kind: kindTool, Name: u.Prefix + l.Name, Reason: string(l.Reason)})
	}
}

// wanted applies include and exclude of an upstream to one of its own names.
func wanted(u *serverconfig.Upstream, name string) bool {
	return (len(u.Include) == 0 || glob.Any(u.Include, name)) && !glob.Any(u.Exclude, name)
}

// idsOf are the identities that nothing of an upstream can have: declared
// entries always win, and so does an identity that they quarrel about.
func idsOf[E any](declared []E, reserved []string, id func(*E) string) map[string]bool {
	out := make(map[string]bool, len(declared)+len(reserved))
	for i := range declared {
		out[id(&declared[i])] = true
	}
	for _, name := range reserved {
		out[name] = true
	}
	return out
}

// builtIn adds the names of tools that the server has itself.
func builtIn(config *serverconfig.Config, reserved []string) []string {
	if config.Retrieve {
		return append(slices.Clip(reserved), serverconfig.RetrieveTool)
	}
	return reserved
}

// resolve leaves one entry per identity and caller. By the policy that of the
// first upstream that serves the caller wins, or that of the last one: whoever
// stands behind one that serves everybody is never asked. With HideAll the
// server hides what several serve one caller with, and all that several
// upstreams serve everybody with.
func resolve[E any](c *composer, kind string, all []candidate[E], taken map[string]bool) []candidate[E] {
	type brought struct {
		by     map[string]bool // upstreams
		closed bool            // by one that serves everybody
		clash  bool            // of several that do, or within one upstream
	}
	of := map[string]*brought{}
	keep := make([]bool, len(all))
	hideAll := c.policy.Conflicts == "HideAll"
	for n := range all {
		i := n
		if c.policy.Conflicts == "Newest" {
			i = len(all) - 1 - n
		}
		id, u := all[i].id, all[i].upstream
		b := of[id]
		if b == nil {
			b = &brought{by: map[string]bool{}}
			of[id] = b
		}
		everybody := u.When == ""
		b.clash = b.clash || b.by[u.Name] || everybody && b.closed
		keep[i] = !taken[id] && !b.by[u.Name] && (!b.closed || hideAll)
		b.by[u.Name], b.closed = true, b.closed || everybody
	}
	var out []candidate[E]
	for i := range all {
		if !keep[i] || hideAll && of[all[i].id].clash {
			c.refuse(kind, all[i].id, podreport.ReasonConflict)
			continue
		}
		out = append(out, all[i])
	}
	return out
}

// cut keeps the first policy.Max tools.
func (c *composer) cut(all []candidate[serverconfig.Tool]) []candidate[serverconfig.Tool] {
	if len(all) <= int(c.policy.Max) {
		return all
	}
	for _, t := range all[c.policy.Max:] {
		c.refuse(kindTool, t.id, podreport.ReasonOverMax)
	}
	return all[:c.policy.Max]
}

// join gives a new list of what is declared and what upstreams bring. Of
// several entries of one identity the first is asked first.
func join[E any](c *composer, declared []E, brought []candidate[E]) []E {
	out := slices.Clip(declared)
	if c.policy.Conflicts == "Newest" {
		brought = slices.Clone(brought)
		slices.Reverse(brought)
	}
	for i := range brought {
		out = append(out, brought[i].entry)
	}
	return out
}

// guard gives the declared tools that an upstream answers the callers that it
// serves.
func guard(config *serverconfig.Config) []serverconfig.Tool {
	when := map[string]string{}
	for i := range config.Upstreams {
		when[config.Upstreams[i].Name] = config.Upstreams[i].When
	}
	out := slices.Clone(config.Tools)
	for i := range out {
		if target := out[i].Upstream; target != nil {
			out[i].When = when[target.Upstream]
		}
	}
	return out
}

// readers are the upstreams that are asked for resources which nothing else
// serves, such as those that a tool's answer names. One with an include is
// not: what is not listed has no name that could be included. What one lists
// and is not served is not read there either.
func (c *composer) readers(config *serverconfig.Config, listings map[string]Listing) []serverconfig.UpstreamResource {
	served := map[string]bool{}
	for _, list := range [][]candidate[serverconfig.Resource]{c.resources, c.templates} {
		for _, r := range list {
			served[r.upstream.Name+" "+r.id] = true
		}
	}
	var out []serverconfig.UpstreamResource
	for i := range config.Upstreams {
		u := &config.Upstreams[i]
		listing, ok := listings[u.Name]
		if !ok || !listing.Can.Resources || len(u.Include) > 0 {
			continue
		}
		reader := serverconfig.UpstreamResource{Upstream: u.Name, When: u.When}
		for _, e := range slices.Concat(listing.Resources, listing.Templates) {
			if !served[u.Name+" "+e.ID] {
				reader.Hidden = append(reader.Hidden, e.ID)
			}
		}
		out = append(out, reader)
	}
	return out
}

// caching: lists are kept no longer than any upstream allows, not at all where
// one does not tell of changes, and by nobody else where one says so.
func caching(config *serverconfig.Config, listings map[string]Listing) (seconds int32, scope serverconfig.CacheScope) {
	seconds, scope = config.CacheSeconds, config.CacheScope
	for _, l := range listings {
		if !l.Can.ListChanged() {
			seconds = 0
		}
		if l.TTL != nil {
			seconds = min(seconds, int32(*l.TTL/time.Second)) //nolint:gosec // The client bounds it by an hour.
		}
		if l.Private {
			scope = serverconfig.CachePrivate
		}
	}
	return seconds, scope
}
