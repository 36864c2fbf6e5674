// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// complete offers servers, then the server's tools, then the tool's arguments
// and the values that they may have.
func (c *command) complete(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return complete.Servers(c.Env)(cmd, args, word)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), complete.Patience)
	defer cancel()
	tools := c.tools(ctx, args[0])
	if len(args) == 1 {
		var out []string
		for _, tool := range tools {
			if strings.HasPrefix(tool.Name, word) && env.Line(tool.Name) == tool.Name {
				out = append(out, cobra.CompletionWithDesc(tool.Name, describe(tool.Definition)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	for _, tool := range tools {
		if tool.Name == args[1] {
			return offer(shapeOf(inputSchema(tool.Definition)), args[2:], word)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// tools that the server lists now; none where it does not answer.
func (c *command) tools(ctx context.Context, server string) []client.Entry {
	endpoints, err := c.Endpoints(ctx, c.Env, server)
	if err != nil {
		return nil
	}
	session, err := reach.Session(ctx, endpoints[0], nil)
	if err != nil {
		return nil
	}
	defer session.Close(ctx)
	lists, err := session.Lists(ctx)
	if err != nil {
		return nil
	}
	return lists.Tools
}

// describe is the first words of a definition's description.
func describe(definition json.RawMessage) string {
	var read struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(definition, &read) // Without one, nothing is said.
	return env.Cut(env.Line(read.Description), 60)
}

// offer gives arguments that are not written yet, those that are required
// first, or the values of the one that is being written.
func offer(s shape, written []string, word string) ([]string, cobra.ShellCompDirective) {
	if name, _, begun := strings.Cut(word, "="); begun {
		return values(s, name, word), cobra.ShellCompDirectiveNoFileComp
	}
	given := map[string]bool{}
	for _, w := range written {
		name, _, _ := strings.Cut(w, "=")
		given[strings.TrimSuffix(name, ":")] = true
	}
	var out []string
	seen := map[string]bool{}
	for _, name := range append(s.required(), s.names()...) {
		property, _ := s.property(name)
		if seen[name] || given[name] && !property.is("array") || !strings.HasPrefix(name, word) || env.Line(name) != name {
			continue
		}
		seen[name] = true
		out = append(out, cobra.CompletionWithDesc(name+"=", env.Cut(env.Line(strings.TrimSpace(property.expected()+". "+property.description())), 60)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveKeepOrder
}

// values that the argument of that name may have, as whole words.
func values(s shape, name, word string) []string {
	property, _ := s.property(strings.TrimSuffix(name, ":"))
	choices := property.choices()
	if choices == nil && property.is("boolean") {
		choices = []any{true, false}
	}
	var out []string
	for _, v := range choices {
		text, ok := v.(string)
		if !ok {
			raw, err := json.Marshal(v)
			if err != nil {
				continue
			}
			text = string(raw)
		}
		if whole := name + "=" + text; strings.HasPrefix(whole, word) && env.Line(whole) == whole {
			out = append(out, whole)
		}
	}
	return out
}
