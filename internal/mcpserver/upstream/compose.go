// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Listing is what one upstream lists at present.
type Listing struct {
	*client.Lists
	Can client.Abilities
}

// Composed is a catalog with the tools of its upstreams.
type Composed struct {
	// Config holds them beside the declared ones.
	Config *serverconfig.Config
	// NotServed are tools of upstreams that are not served, and why. What the
	// owner left out by include, exclude or filter is not among them.
	NotServed []podreport.NotServed
}

// candidate is a tool of an upstream under its final name.
type candidate struct {
	tool serverconfig.Tool
	// vars of the filter.
	definition wire.Object
}

// Compose joins the tools of listings, by the name of their upstream, to the
// declared ones, in the order that the design fixes: an upstream's include and
// exclude, of its own names; prefix; overrides, which give final names; then
// include, exclude and filter of the server; conflicts; max. It does not
// change config.
func Compose(config *serverconfig.Config, listings map[string]Listing) Composed {
	out := Composed{Config: config}
	if len(config.Upstreams) == 0 {
		return out
	}
	policy := config.Policy
	if policy == nil {
		policy = &serverconfig.ToolsPolicy{}
	}
	var all []candidate
	for i := range config.Upstreams {
		u := &config.Upstreams[i]
		if listing, ok := listings[u.Name]; ok {
			all = append(all, out.adapt(u, policy, listing.Tools)...)
		}
	}
	all = out.filter(policy, all)
	all = out.resolve(config, policy, all)
	all = out.cut(policy, all)
	joined := *config
	joined.Tools = slices.Clip(config.Tools)
	for i := range all {
		joined.Tools = append(joined.Tools, all[i].tool)
	}
	joined.CacheSeconds, joined.CacheScope = caching(config, listings)
	out.Config = &joined
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

func (c *Composed) refuse(name, reason string) {
	c.NotServed = append(c.NotServed, podreport.NotServed{Kind: "tool", Name: name, Reason: reason})
}

// adapt gives the tools of one upstream under their final names.
func (c *Composed) adapt(u *serverconfig.Upstream, policy *serverconfig.ToolsPolicy, tools []client.Entry) []candidate {
	overrides := make(map[string]*serverconfig.Override, len(policy.Overrides))
	for i := range policy.Overrides {
		overrides[policy.Overrides[i].Name] = &policy.Overrides[i]
	}
	var out []candidate
	for _, tool := range tools {
		if len(u.Include) > 0 && !glob.Any(u.Include, tool.Name) || glob.Any(u.Exclude, tool.Name) {
			continue
		}
		override := overrides[u.Prefix+tool.Name]
		name := finalName(u, tool.Name, override)
		definition, err := wire.DecodeObject(tool.Definition)
		switch {
		case err != nil:
			continue // The client read it before.
		case needsTask(definition):
			c.refuse(name, podreport.ReasonTasksUnsupported)
			continue
		case !mcp.ValidToolName(name):
			c.refuse(name, podreport.ReasonInvalidName)
			continue
		}
		definition = adapted(definition, u.Name, name, override)
		out = append(out, candidate{definition: definition, tool: serverconfig.Tool{
			Name: name, Definition: encode(definition), Source: Source(u.Name), Metadata: metadata(u, override),
			Upstream: &serverconfig.UpstreamTool{Upstream: u.Name, Tool: tool.Name},
		}})
	}
	return out
}

// Source of the tools of an upstream.
func Source(upstream string) string { return "upstream/" + upstream }

func finalName(u *serverconfig.Upstream, own string, override *serverconfig.Override) string {
	if override != nil && override.Rename != "" {
		return override.Rename
	}
	return u.Prefix + own
}

// filter applies include, exclude and filter to final names.
func (c *Composed) filter(policy *serverconfig.ToolsPolicy, all []candidate) []candidate {
	var program *expression.Program
	if policy.Filter != "" {
		var err error
		if program, err = expression.Compile(expression.Filter, policy.Filter, expression.Bool); err != nil {
			return nil // The operator says so of the server.
		}
	}
	return slices.DeleteFunc(all, func(t candidate) bool {
		name := t.tool.Name
		if len(policy.Include) > 0 && !glob.Any(policy.Include, name) || glob.Any(policy.Exclude, name) {
			return true
		}
		if program == nil {
			return false
		}
		value, err := wire.Decode(t.tool.Definition)
		definition, _ := value.(map[string]any)
		if err != nil {
			c.refuse(name, podreport.ReasonFilterFailed)
			return true
		}
		keep, err := program.Eval(context.Background(), expression.ToolVars(definition, t.tool.Metadata, t.tool.Source))
		if err != nil {
			c.refuse(name, podreport.ReasonFilterFailed)
			return true
		}
		kept, _ := keep.(bool)
		return !kept
	})
}

// resolve leaves one tool per name. A declared one always wins, and so does a
// name that declared tools quarrel about.
func (c *Composed) resolve(config *serverconfig.Config, policy *serverconfig.ToolsPolicy, all []candidate) []candidate {
	taken := make(map[string]bool, len(config.Tools)+len(policy.Reserved))
	for i := range config.Tools {
		taken[config.Tools[i].Name] = true
	}
	for _, name := range policy.Reserved {
		taken[name] = true
	}
	winner := map[string]int{}
	several := map[string]bool{}
	for i := range all {
		name := all[i].tool.Name
		_, twice := winner[name]
		several[name] = several[name] || twice
		if !twice || policy.Conflicts == "Newest" {
			winner[name] = i
		}
	}
	var out []candidate
	for i := range all {
		name := all[i].tool.Name
		if taken[name] || winner[name] != i || policy.Conflicts == "HideAll" && several[name] {
			c.refuse(name, podreport.ReasonConflict)
			continue
		}
		out = append(out, all[i])
	}
	return out
}

// cut keeps the first policy.Max.
func (c *Composed) cut(policy *serverconfig.ToolsPolicy, all []candidate) []candidate {
	if len(all) <= int(policy.Max) {
		return all
	}
	for _, t := range all[policy.Max:] {
		c.refuse(t.tool.Name, podreport.ReasonOverMax)
	}
	return all[:policy.Max]
}
