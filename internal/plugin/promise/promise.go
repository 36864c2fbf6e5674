// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package promise is "kubectl mcp contract": what a server gives now as a
// contract to pin, and how it differs from what was pinned.
package promise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/glob"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

type command struct {
	*env.Env
	reach.Selection
	tools       []string
	onDrift     string
	definitions string
	diff        string
}

// NewContract makes "contract".
func NewContract(e *env.Env) *cobra.Command {
	c := &command{Env: e}
	out := &cobra.Command{
		Use:   "contract SERVER",
		Short: "Pin what a server gives now, or compare it with what was pinned",
		Long: `Pin what a server gives now, or compare it with what was pinned.

Printed is a spec.contract with the digests of the tools and the instructions
that the server gives at this moment, as a patch of its MCPServer. --definitions
also writes the full definitions to a file, to be kept beside it.

--diff compares the server with such a file, or with a contract in YAML, which
has digests alone: then it tells which parts differ, and not how. What is new in
the server is told, and is no drift. The exit code is 1 when something differs.`,
		Example: `  kubectl mcp contract weather --definitions weather.json > contract.yaml
  kubectl patch mcpserver weather --type merge --patch-file contract.yaml

  # In CI: what changed since, field by field
  kubectl mcp contract weather --diff weather.json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	c.AddTo(out.Flags(), false)
	flags := out.Flags()
	flags.StringArrayVar(&c.tools, "tool", nil, "Only tools whose name matches this glob. May be repeated.")
	flags.StringVar(&c.onDrift, "on-drift", "", "Report or Hide, for spec.contract.onDrift.")
	flags.StringVar(&c.definitions, "definitions", "", "Also write the full definitions to this file.")
	flags.StringVar(&c.diff, "diff", "", "Compare with the definitions or the contract in this file.")
	out.MarkFlagsMutuallyExclusive("diff", "definitions")
	out.MarkFlagsMutuallyExclusive("diff", "on-drift")
	complete.Pods(out, e)
	_ = out.RegisterFlagCompletionFunc("on-drift", cobra.FixedCompletions([]string{string(mcpv1.DriftReport), string(mcpv1.DriftHide)}, cobra.ShellCompDirectiveNoFileComp))
	return out
}

func (c *command) run(ctx context.Context, server string) error {
	switch mcpv1.DriftPolicy(c.onDrift) {
	case "", mcpv1.DriftReport, mcpv1.DriftHide:
	default:
		return fmt.Errorf("--on-drift is %s or %s", mcpv1.DriftReport, mcpv1.DriftHide)
	}
	var old *pinned
	if c.diff != "" {
		var err error
		if old, err = readPinned(c.diff); err != nil {
			return err
		}
	}
	ctx, cancel := c.Within(ctx)
	defer cancel()
	endpoints, err := c.Endpoints(ctx, c.Env, server)
	if err != nil {
		return err
	}
	now, err := manifest.Take(ctx, endpoints[0])
	if err != nil {
		return err
	}
	now.Tools = c.chosen(now.Tools)
	if old != nil {
		old.choose(c)
		return c.compare(old, now)
	}
	return c.pin(server, now)
}

// chosen keeps the tools that --tool names.
func (c *command) chosen(list []manifest.Entry) []manifest.Entry {
	out := []manifest.Entry{}
	for _, e := range list {
		if c.wants(e.ID) {
			out = append(out, e)
		}
	}
	return out
}

func (c *command) wants(tool string) bool {
	return len(c.tools) == 0 || glob.Any(c.tools, tool)
}

// patch is what is printed.
type patch struct {
	Spec struct {
		Contract mcpv1.Contract `json:"contract"`
	} `json:"spec"`
}

// maxName is the longest name of a tool that a contract takes.
const maxName = 128

// Of is the contract of what a server gives. unpinned are tools that no
// contract can pin, and why.
func Of(m *manifest.Manifest) (out mcpv1.Contract, unpinned []string) {
	out.Instructions = m.Server.Digest
	for _, e := range m.Tools {
		switch {
		case e.Digest == "":
			unpinned = append(unpinned, fmt.Sprintf("the definition of %s is too large or not sound JSON, and has no digest", env.Line(e.ID)))
			continue
		case len([]rune(e.ID)) > maxName:
			unpinned = append(unpinned, fmt.Sprintf("the name %s has more than %d characters", env.Cut(env.Line(e.ID), 60), maxName))
			continue
		}
		tool := mcpv1.ContractTool{Name: e.ID, Digest: e.Digest}
		f := e.Tool.Fields
		fields := mcpv1.ContractFields{
			Title: mcpv1.FieldDigest(f.Title), Description: mcpv1.FieldDigest(f.Description), InputSchema: mcpv1.FieldDigest(f.InputSchema),
			OutputSchema: mcpv1.FieldDigest(f.OutputSchema), Annotations: mcpv1.FieldDigest(f.Annotations), Other: mcpv1.FieldDigest(f.Other),
		}
		if fields != (mcpv1.ContractFields{}) {
			tool.Fields = &fields
		}
		out.Tools = append(out.Tools, tool)
	}
	return out, unpinned
}

// pin prints the contract, and writes the definitions.
func (c *command) pin(server string, now *manifest.Manifest) error {
	var p patch
	var unpinned []string
	p.Spec.Contract, unpinned = Of(now)
	p.Spec.Contract.OnDrift = mcpv1.DriftPolicy(c.onDrift)
	for _, why := range unpinned {
		fmt.Fprintf(c.ErrOut, "Not pinned: %s.\n", why)
	}
	contract := &p.Spec.Contract
	switch {
	case len(contract.Tools) > mcpv1.MaxContractTools:
		return env.Hint(fmt.Errorf("%s has %d tools, and a contract pins %d", server, len(contract.Tools), mcpv1.MaxContractTools), "Choose some with --tool GLOB.")
	case len(contract.Tools) == 0 && contract.Instructions == "":
		return env.Hint(fmt.Errorf("%s has nothing that a contract can pin: no tool, and no instructions", server), "See what it has: kubectl mcp tools.")
	case len(contract.Tools) == 0 && contract.OnDrift == mcpv1.DriftHide:
		return errors.New("--on-drift Hide needs tools: instructions cannot be withheld")
	}
	if c.definitions != "" {
		raw, err := now.Encode()
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.definitions, raw, 0o644); err != nil { //nolint:gosec // It is to be committed, and holds what any client is told.
			return err
		}
	}
	raw, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "# What %s gives, pinned. Made by \"kubectl mcp contract\".\n%s", strings.TrimSpace(env.Line(withoutQuery(server))), raw)
	return err
}

// withoutQuery is a URL without what may be a credential.
func withoutQuery(server string) string {
	server, _, _ = strings.Cut(server, "?")
	return server
}
