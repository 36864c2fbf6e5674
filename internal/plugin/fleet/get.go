// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

// formats of -o; table is without.
const (
	formatTable        = ""
	formatWide         = "wide"
	formatJSON         = "json"
	formatYAML         = "yaml"
	formatName         = "name"
	formatClientConfig = "clientconfig"
)

var formats = []string{formatJSON, formatYAML, formatWide, formatName, formatClientConfig}

type options struct {
	*env.Env
	allNamespaces, watch, noHeaders bool
	selector, output                string

	names     []string
	namespace string
	selects   labels.Selector
	client    client.WithWatch
	looker    *operator.Looker
}

// NewGet is "kubectl mcp get".
func NewGet(e *env.Env) *cobra.Command {
	o := &options{Env: e}
	command := &cobra.Command{
		Use:   "get [NAME...]",
		Short: "List servers with their health, the worst first",
		Long: `List MCPServers with their health, the worst first, and say whether what is
told of them is fresh: without a living operator a status is only old.

HEALTH is NotReady, Unknown, Degraded (a client can use it, and something is
wrong), Starting, Updating, Idle (no pods are wanted) or Ready.
REPLICAS are those proved, of those wanted. TOOLS are those proved on the wire.`,
		Example: `  # The servers of this namespace
  kubectl mcp get

  # Those of all namespaces, and what changes
  kubectl mcp get -A -w

  # A configuration for a client
  kubectl mcp get weather -o clientconfig`,
		ValidArgsFunction: complete.Servers(e),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(args); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "List the servers of all namespaces.")
	flags.BoolVarP(&o.watch, "watch", "w", false, "After the list, print each server again that changes.")
	flags.BoolVar(&o.noHeaders, "no-headers", false, "Print rows alone: no heads of columns, no summary.")
	flags.StringVarP(&o.selector, "selector", "l", "", "List the servers whose labels match, for example -l team=a.")
	flags.StringVarP(&o.output, "output", "o", "", "Print in another format: "+strings.Join(formats, ", ")+".")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// complete checks the flags before anything is asked for.
func (o *options) complete(args []string) error {
	o.names = args
	if o.output != formatTable && !slices.Contains(formats, o.output) {
		return env.Hint(fmt.Errorf("there is no output format %q", o.output), "Formats are "+strings.Join(formats, ", ")+".")
	}
	if o.allNamespaces && len(args) > 0 {
		return env.Hint(errors.New("a server cannot be named across all namespaces"), "Leave out -A and choose a namespace with -n, or leave out the name.")
	}
	if o.selector != "" && len(args) > 0 {
		return env.Hint(errors.New("names and a selector exclude each other"), "Leave out one of the two.")
	}
	if o.watch && o.output == formatClientConfig {
		return env.Hint(errors.New("clientconfig is one file and cannot be watched"), "Leave out -w.")
	}
	var err error
	if o.selects, err = labels.Parse(o.selector); err != nil {
		return env.Hint(fmt.Errorf("selector: %w", err), "A selector is like -l team=a or -l 'team in (a,b)'.")
	}
	if !o.allNamespaces {
		if o.namespace, err = o.Namespace(); err != nil {
			return err
		}
	}
	if o.client, err = o.Client(); err != nil {
		return err
	}
	o.looker, err = operator.NewLooker(o.Env)
	return err
}

// list reads the servers that were asked for, and the version to watch from.
func (o *options) list(ctx context.Context) ([]mcpv1.MCPServer, string, error) {
	if len(o.names) > 0 && !o.watch {
		var out []mcpv1.MCPServer
		for _, name := range o.names {
			server, err := o.Server(ctx, o.client, name)
			if err != nil {
				return nil, "", err
			}
			out = append(out, *server)
		}
		return out, "", nil
	}
	var list mcpv1.MCPServerList
	if err := o.client.List(ctx, &list, client.InNamespace(o.namespace), client.MatchingLabelsSelector{Selector: o.selects}); err != nil {
		return nil, "", env.ClusterError(err)
	}
	items := slices.DeleteFunc(list.Items, func(s mcpv1.MCPServer) bool { return !o.wanted(&s) })
	for _, name := range o.names {
		if !slices.ContainsFunc(items, func(s mcpv1.MCPServer) bool { return s.Name == name }) {
			_, err := o.Server(ctx, o.client, name)
			if err != nil {
				return nil, "", err
			}
		}
	}
	return items, list.ResourceVersion, nil
}

func (o *options) wanted(server *mcpv1.MCPServer) bool {
	return len(o.names) == 0 || slices.Contains(o.names, server.Name)
}

func (o *options) run(ctx context.Context) error {
	servers, version, err := o.list(ctx)
	if err != nil {
		return err
	}
	state, err := o.looker.Look(ctx)
	if err != nil {
		return err
	}
	rows := Judge(servers, state)
	if o.output != formatTable && o.output != formatWide {
		if err := o.write(rows, state); err != nil || !o.watch {
			return err
		}
		return o.follow(ctx, &objects{o}, rows, state, version)
	}
	if len(rows) == 0 && !o.watch {
		o.none()
		return nil
	}
	table := NewTable(rows, o.allNamespaces, o.output == formatWide, o.Width(), o.Style())
	if !o.noHeaders {
		table.Head(o.Out)
	}
	for _, row := range rows {
		table.Row(o.Out, row)
	}
	if o.watch {
		return o.follow(ctx, &lines{o, table}, rows, state, version)
	}
	if !o.noHeaders {
		fmt.Fprintln(o.Out)
		for _, line := range Summary(rows, state) {
			fmt.Fprintln(o.Out, line)
		}
	}
	return nil
}

// none says that there are none, as kubectl does: beside the output.
func (o *options) none() {
	switch {
	case o.allNamespaces:
		fmt.Fprintln(o.ErrOut, "There are no MCPServers.")
	case o.selector != "":
		fmt.Fprintf(o.ErrOut, "There are no MCPServers in namespace %s that match.\n", o.namespace)
	default:
		fmt.Fprintf(o.ErrOut, "There are no MCPServers in namespace %s. See all namespaces with -A.\n", o.namespace)
	}
}
