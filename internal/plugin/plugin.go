// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin is "kubectl mcp". Each command, or group of commands that
// belong together, is a room below it; what they share is in env.
//
// It judges nothing by itself: conditions, reports and proofs are those of the
// operator and of internal/mcpprobe.
package plugin

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/plugin/call"
	"github.com/espalier-dev/espalier/internal/plugin/catalogdocs"
	"github.com/espalier-dev/espalier/internal/plugin/desktop"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/fleet"
	"github.com/espalier-dev/espalier/internal/plugin/importing"
	"github.com/espalier-dev/espalier/internal/plugin/lists"
	"github.com/espalier-dev/espalier/internal/plugin/probing"
	"github.com/espalier-dev/espalier/internal/plugin/promise"
	"github.com/espalier-dev/espalier/internal/plugin/why"
	"github.com/espalier-dev/espalier/internal/version"
)

// groups of commands, in the order of the help.
const (
	groupFleet = "fleet"
	groupUse   = "use"
	groupFiles = "files"
)

// New is the command with all that is below it.
func New(streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-mcp",
		Short: "See, use and keep the MCP servers of a cluster",
		Long: `See, use and keep the MCP servers that Espalier runs.

Flags for the cluster, the user and the namespace are those of kubectl.`,
		Version:       version.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl mcp"},
	}
	root.AddGroup(
		&cobra.Group{ID: groupFleet, Title: "See what runs, and why something does not:"},
		&cobra.Group{ID: groupUse, Title: "Use a server:"},
		&cobra.Group{ID: groupFiles, Title: "From files and to files:"},
	)
	e := env.New(streams)
	e.AddFlags(root)
	root.SetUsageTemplate(withoutKubectlFlags(root.UsageTemplate()))
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add(groupFleet, fleet.NewGet(e), why.NewWhy(e))
	add(groupUse, lists.NewTools(e), lists.NewResources(e), lists.NewPrompts(e), call.New(e), probing.New(e))
	add(groupUse, desktop.NewConnect(e), desktop.NewConfig(e))
	add(groupFiles, importing.NewImport(e), catalogdocs.NewDocs(e), promise.NewContract(e))
	return root
}

// withoutKubectlFlags leaves kubectl's own two dozen flags out of each help:
// the root has them as its own, all others as inherited ones.
func withoutKubectlFlags(template string) string {
	local := "{{if .HasAvailableLocalFlags}}"
	template = strings.Replace(template, local, "{{if and .HasParent .HasAvailableLocalFlags}}", 1)
	inherited, end := "{{if .HasAvailableInheritedFlags}}", "{{if .HasHelpSubCommands}}"
	from, to := strings.Index(template, inherited), strings.Index(template, end)
	if from < 0 || to < from {
		return template
	}
	return template[:from] + "\n\n\"kubectl options\" lists the flags for the cluster, the user and the namespace." + template[to:]
}

// Run runs the command line and returns its exit code; env.ExitCodes says
// what they mean.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	root := New(streams)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	return env.Finish(streams.ErrOut, root.ExecuteContext(ctx))
}
