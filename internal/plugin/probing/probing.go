// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probing is "kubectl mcp probe": the operator's own probe, made once
// by hand, with the peer's own words that no status holds.
package probing

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
	"github.com/espalier-dev/espalier/internal/version"
)

type command struct {
	*env.Env
	reach.Selection
	transport, host, output string
}

var (
	transports = []string{"Auto", string(mcpprobe.TransportStreamableHTTP), string(mcpprobe.TransportSSE), string(mcpprobe.TransportWebSocket)}
	formats    = []string{"text", "json"}
)

// New makes "probe".
func New(e *env.Env) *cobra.Command {
	c := &command{Env: e}
	out := &cobra.Command{
		Use:   "probe URL|SERVER",
		Short: "Probe an MCP server as the operator does, and say all that was seen",
		Long: `Probe an MCP server as the operator does, and say all that was seen.

The probe shakes hands, reads the lists, ends its session and calls no tool.
What it says here and in no status are the peer's own words. No credential and
no query of a URL is printed.

A URL is dialled from this machine, loopback and private addresses too. The
replicas of an MCPServer of the namespace are reached through the API server;
the operator's own token and the headers of spec.probe are not sent.

Exit code 1 says that the server is not proved.`,
		Example: `  kubectl mcp probe https://mcp.example.com/mcp
  kubectl mcp probe http://localhost:3000/sse --transport SSE
  kubectl mcp probe weather --all-pods`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	flags := out.Flags()
	c.AddTo(flags, true)
	c.Timeout = mcpprobe.DefaultTimeout
	flags.Lookup("timeout").DefValue = c.Timeout.String()
	flags.StringVar(&c.transport, "transport", "", "How to speak to it: "+strings.Join(transports, ", ")+". Default is what the MCPServer says, else Auto.")
	flags.StringVar(&c.host, "host", "", "Host header, and TLS name, in place of the URL's.")
	flags.StringVarP(&c.output, "output", "o", "text", "Output format: "+strings.Join(formats, ", ")+".")
	complete.Pods(out, e)
	_ = out.RegisterFlagCompletionFunc("transport", cobra.FixedCompletions(transports, cobra.ShellCompDirectiveNoFileComp))
	_ = out.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return out
}

// grace is how long finding the replicas may take beside the probes.
const grace = 30 * time.Second

func (c *command) run(ctx context.Context, server string) error {
	switch {
	case c.transport != "" && !slices.Contains(transports, c.transport):
		return fmt.Errorf("--transport %s is not known: %s", c.transport, strings.Join(transports, ", "))
	case !slices.Contains(formats, c.output):
		return fmt.Errorf("-o %s is not known here: %s", c.output, strings.Join(formats, ", "))
	}
	finding, cancel := context.WithTimeout(ctx, grace)
	endpoints, err := c.Endpoints(finding, c.Env, server)
	cancel()
	if err != nil {
		return err
	}
	client := mcpprobe.New(mcpprobe.Options{
		// Who sits at a terminal may dial what the terminal reaches.
		Policy: mcpprobe.Policy{AllowLoopback: true}, Version: version.Version, Proxy: proxy,
	})
	defer client.Close() // Sessions end behind a finished probe.
	seen := make([]*sight, 0, len(endpoints))
	for _, p := range endpoints {
		seen = append(seen, c.probe(ctx, client, p, server))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := c.print(seen); err != nil {
		return err
	}
	if slices.ContainsFunc(seen, func(f *sight) bool { return f.report.Outcome != mcpprobe.Proved }) {
		return env.No
	}
	return nil
}

// probe probes one endpoint.
func (c *command) probe(ctx context.Context, client *mcpprobe.Client, p *reach.Endpoint, server string) *sight {
	t := p.Target()
	if c.transport != "" {
		t.Transport = mcpprobe.Transport(strings.TrimPrefix(c.transport, transports[0]))
	}
	if c.host != "" {
		t.Host = c.host
	}
	t.Timeout = c.Timeout
	out := &sight{endpoint: p, byURL: reach.IsURL(server)}
	if p.Pod != "" {
		out.namespace, _ = c.Namespace() // Its pods were found in it.
	}
	t.Tool = out.odd.tool
	out.report = client.Probe(ctx, t)
	out.odd.era = out.report.Era
	return out
}
