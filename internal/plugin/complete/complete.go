// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package complete gives shells the names that commands of the plugin take. It
// asks the cluster, and is silent where that does not answer: a shell has no
// place for errors.
package complete

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// Patience is how long a completion may take: a person waits for it.
const Patience = 5 * time.Second

// Func completes one word.
type Func = func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective)

// none offers nothing, no file names either.
func none() ([]string, cobra.ShellCompDirective) { return nil, cobra.ShellCompDirectiveNoFileComp }

// First completes the first argument by f, and no other.
func First(f Func) Func {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return none()
		}
		return f(cmd, args, word)
	}
}

// Servers completes the names of MCPServers in the chosen namespace.
func Servers(e *env.Env) Func {
	return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), Patience)
		defer cancel()
		c, err := e.Client()
		if err != nil {
			return none()
		}
		namespace, err := e.Namespace()
		if err != nil {
			return none()
		}
		var list mcpv1.MCPServerList
		if c.List(ctx, &list, client.InNamespace(namespace)) != nil {
			return none()
		}
		var out []string
		for _, s := range list.Items {
			if strings.HasPrefix(s.Name, word) {
				out = append(out, s.Name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// Pods completes the flag --pod of command by the replicas of the server that
// its first argument names.
func Pods(command *cobra.Command, e *env.Env) {
	_ = command.RegisterFlagCompletionFunc("pod", func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 || reach.IsURL(args[0]) {
			return none()
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), Patience)
		defer cancel()
		replicas, err := (&reach.Selection{AllPods: true}).Endpoints(ctx, e, args[0])
		if err != nil {
			return none()
		}
		var out []string
		for _, p := range replicas {
			if p.Pod != "" && strings.HasPrefix(p.Pod, word) {
				out = append(out, p.Pod)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	})
}
