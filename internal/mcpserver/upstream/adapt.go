// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

const (
	// maxPromptName and maxURI are in bytes. A cursor holds either.
	maxPromptName = 256
	maxURI        = 2048
)

// adaptTools gives the tools of one upstream under their final names.
func (c *composer) adaptTools(u *serverconfig.Upstream, tools []client.Entry) []candidate[serverconfig.Tool] {
	var out []candidate[serverconfig.Tool]
	for _, tool := range tools {
		if !wanted(u, tool.Name) {
			continue
		}
		override := c.overrides[u.Prefix+tool.Name]
		name := finalName(u, tool.Name, override)
		definition, err := wire.DecodeObject(tool.Definition)
		switch {
		case err != nil:
			continue // The client read it before.
		case needsTask(definition):
			c.refuse(kindTool, name, podreport.ReasonTasksUnsupported)
			continue
		case !mcp.ValidToolName(name):
			c.refuse(kindTool, name, podreport.ReasonInvalidName)
			continue
		}
		out = append(out, candidate[serverconfig.Tool]{id: name, upstream: u, entry: serverconfig.Tool{
			Name: name, Definition: encode(adapted(definition, u.Name, name, override)), Source: serverconfig.SourceOf(u.Name),
			Metadata: metadata(u, override), Upstream: &serverconfig.UpstreamTool{Upstream: u.Name, Tool: tool.Name, Listed: true}, When: u.When,
		}})
	}
	return out
}

func finalName(u *serverconfig.Upstream, own string, override *serverconfig.Override) string {
	if override != nil && override.Rename != "" {
		return override.Rename
	}
	return u.Prefix + own
}

// filter applies include, exclude and filter of the server to final names of
// tools.
func (c *composer) filter(all []candidate[serverconfig.Tool]) []candidate[serverconfig.Tool] {
	var program *expression.Program
	if c.policy.Filter != "" {
		var err error
		if program, err = expression.Compile(expression.Filter, c.policy.Filter, expression.Bool); err != nil {
			return nil // The operator says so of the server.
		}
	}
	return slices.DeleteFunc(all, func(t candidate[serverconfig.Tool]) bool {
		if len(c.policy.Include) > 0 && !glob.Any(c.policy.Include, t.id) || glob.Any(c.policy.Exclude, t.id) {
			return true
		}
		if program == nil {
			return false
		}
		value, err := wire.Decode(t.entry.Definition)
		definition, _ := value.(map[string]any)
		if err != nil {
			c.refuse(kindTool, t.id, podreport.ReasonFilterFailed)
			return true
		}
		keep, err := program.Eval(context.Background(), expression.ToolVars(definition, t.entry.Metadata, t.entry.Source))
		if err != nil {
			c.refuse(kindTool, t.id, podreport.ReasonFilterFailed)
			return true
		}
		kept, _ := keep.(bool)
		return !kept
	})
}

// adaptResources gives resources or templates of one upstream under their
// final names; their URIs stay. key is where the definition has the URI.
func (c *composer) adaptResources(u *serverconfig.Upstream, kind, key string, entries []client.Entry) []candidate[serverconfig.Resource] {
	var out []candidate[serverconfig.Resource]
	for _, r := range entries {
		definition, err := wire.DecodeObject(r.Definition)
		if err != nil || !wanted(u, r.Name) {
			continue
		}
		if uri, _ := definition.Text(key); uri != r.ID || !usable(r.ID, maxURI) {
			c.refuse(kind, r.ID, podreport.ReasonInvalidURI)
			continue
		}
		if r.Name != "" {
			definition = set(definition, "name", text(u.Prefix+r.Name))
		}
		out = append(out, candidate[serverconfig.Resource]{id: r.ID, upstream: u, entry: serverconfig.Resource{
			URI: r.ID, Definition: encode(described(definition, u.Name)), Source: serverconfig.SourceOf(u.Name), Metadata: u.Metadata,
			Upstream: &serverconfig.UpstreamResource{Upstream: u.Name}, When: u.When,
		}})
	}
	return out
}

// adaptPrompts gives the prompts of one upstream under their final names.
func (c *composer) adaptPrompts(u *serverconfig.Upstream, prompts []client.Entry) []candidate[serverconfig.Prompt] {
	var out []candidate[serverconfig.Prompt]
	for _, p := range prompts {
		definition, err := wire.DecodeObject(p.Definition)
		if err != nil || !wanted(u, p.Name) {
			continue
		}
		name := u.Prefix + p.Name
		if !usable(name, maxPromptName) {
			c.refuse(kindPrompt, name, podreport.ReasonInvalidName)
			continue
		}
		definition = described(set(definition, "name", text(name)), u.Name)
		out = append(out, candidate[serverconfig.Prompt]{id: name, upstream: u, entry: serverconfig.Prompt{
			Name: name, Definition: encode(definition), Source: serverconfig.SourceOf(u.Name), Metadata: u.Metadata,
			Upstream: &serverconfig.UpstreamPrompt{Upstream: u.Name, Prompt: p.Name}, When: u.When,
		}})
	}
	return out
}

// usable reports whether text of a peer can be an identity here.
func usable(text string, most int) bool {
	return text != "" && len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}
