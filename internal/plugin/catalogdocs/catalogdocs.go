// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalogdocs is "kubectl mcp docs": what a server lists as a page for
// people and as a manifest for programs.
package catalogdocs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

const (
	markdown = "markdown"
	manifold = "json"
)

type command struct {
	*env.Env
	reach.Selection
	output string
}

// NewDocs makes "docs".
func NewDocs(e *env.Env) *cobra.Command {
	c := &command{Env: e}
	out := &cobra.Command{
		Use:   "docs SERVER",
		Short: "Write what a server lists as a page, or as a manifest",
		Long: `Write what a server lists as a page, or as a manifest.

SERVER is an MCPServer of the namespace, reached through the API server, or the
URL of any MCP server that this machine reaches. Tools, resources, templates and
prompts are sorted, and nothing tells of a time or a pod: as long as the server
says the same, the output is the same, and fit to commit.

-o json has the full definitions with their digests; "kubectl mcp contract
--diff" compares a server with it.`,
		Example: `  kubectl mcp docs weather > docs/weather.md
  kubectl mcp docs weather -o json > docs/weather.json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.AddTo(out.Flags(), false)
	out.Flags().StringVarP(&c.output, "output", "o", markdown, "Output format: markdown or json.")
	complete.Pods(out, e)
	_ = out.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{markdown, manifold}, cobra.ShellCompDirectiveNoFileComp))
	return out
}

func (c *command) run(ctx context.Context, server string) error {
	if c.output != markdown && c.output != manifold {
		return fmt.Errorf("-o %s is not known here: %s or %s", c.output, markdown, manifold)
	}
	ctx, cancel := c.Within(ctx)
	defer cancel()
	endpoints, err := c.Endpoints(ctx, c.Env, server)
	if err != nil {
		return err
	}
	m, err := manifest.Take(ctx, endpoints[0])
	if err != nil {
		return err
	}
	out := []byte(page(server, m))
	if c.output == manifold {
		if out, err = m.Encode(); err != nil {
			return err
		}
	}
	_, err = c.Out.Write(out)
	return err
}
