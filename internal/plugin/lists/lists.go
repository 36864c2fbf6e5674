// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lists is "kubectl mcp tools|resources|prompts": what a server lists
// at this moment, asked over its own protocol, of one replica or of all.
package lists

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// kind is one of the lists.
type kind struct {
	// name of the command, and of the list in MCP.
	name string
	// of gives the list's entries, methods the requests that bring them.
	of      func(*client.Lists) []entry
	methods []string
	// header and row of the table, and of the wide one.
	header, wideHeader []string
	row, wideRow       func(*entry) []string
}

type command struct {
	*env.Env
	reach.Selection
	kind   *kind
	output string
}

// NewTools makes "tools".
func NewTools(e *env.Env) *cobra.Command { return newList(e, &tools) }

// NewResources makes "resources".
func NewResources(e *env.Env) *cobra.Command { return newList(e, &resources) }

// NewPrompts makes "prompts".
func NewPrompts(e *env.Env) *cobra.Command { return newList(e, &prompts) }

var formats = []string{"json", "yaml", "wide", "name"}

func newList(e *env.Env, k *kind) *cobra.Command {
	c := &command{Env: e, kind: k}
	out := &cobra.Command{
		Use:   k.name + " SERVER",
		Short: "List the " + k.name + " of a server, as it says at this moment",
		Long: fmt.Sprintf(`List the %[1]s of a server, as it says at this moment.

SERVER is an MCPServer of the namespace, reached through the API server, or the
URL of any MCP server that this machine reaches. One replica that is ready is
asked; --all-pods asks each and shows how they differ.

-o json and yaml give the definitions as the server wrote them.`, k.name),
		Example: fmt.Sprintf(`  kubectl mcp %[1]s weather
  kubectl mcp %[1]s weather --all-pods
  kubectl mcp %[1]s https://mcp.example.com/mcp --token-file token -o json`, k.name),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.AddTo(out.Flags(), true)
	out.Flags().StringVarP(&c.output, "output", "o", "", "Output format: "+strings.Join(formats, ", ")+".")
	complete.Pods(out, e)
	_ = out.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return out
}

func (c *command) run(ctx context.Context, server string) error {
	if c.output != "" && !slices.Contains(formats, c.output) {
		return fmt.Errorf("-o %s is not known here: %s", c.output, strings.Join(formats, ", "))
	}
	ctx, cancel := c.Within(ctx)
	defer cancel()
	endpoints, err := c.Endpoints(ctx, c.Env, server)
	if err != nil {
		return err
	}
	answers := c.ask(ctx, endpoints)
	if len(endpoints) == 1 && !c.AllPods {
		if answers[0].err != nil {
			return answers[0].err
		}
		return c.print(server, merge(answers))
	}
	if err := c.print(server, merge(answers)); err != nil {
		return err
	}
	return failures(answers)
}

// answer of one endpoint.
type answer struct {
	endpoint *reach.Endpoint
	entries  []entry
	err      error
}

// ask asks all endpoints at once.
func (c *command) ask(ctx context.Context, endpoints []*reach.Endpoint) []answer {
	answers := make([]answer, len(endpoints))
	done := make(chan struct{})
	for i, p := range endpoints {
		go func() {
			entries, err := c.list(ctx, p)
			answers[i] = answer{p, entries, err}
			done <- struct{}{}
		}()
	}
	for range endpoints {
		<-done
	}
	return answers
}

func (c *command) list(ctx context.Context, p *reach.Endpoint) ([]entry, error) {
	session, err := reach.Session(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	all, err := session.Lists(ctx)
	if err != nil {
		return nil, reach.Explain(p, err)
	}
	for _, method := range c.kind.methods {
		if slices.Contains(all.Failed, method) {
			return nil, env.Hint(fmt.Errorf("%s answered %s with an error", p.Name(), method), "Read the server's log.")
		}
	}
	return c.kind.of(all), nil
}

// failures of the replicas that gave no list.
func failures(answers []answer) error {
	var all []error
	for _, a := range answers {
		if a.err != nil {
			all = append(all, a.err)
		}
	}
	return errors.Join(all...)
}
