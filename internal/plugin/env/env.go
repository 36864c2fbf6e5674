// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env is what all commands of the plugin share: the cluster that the
// user chose, errors that say what to try, exit codes, tables and colours.
package env

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/setup"
	"github.com/espalier-dev/espalier/internal/version"
)

// Env is one invocation.
type Env struct {
	genericiooptions.IOStreams
	// Config are kubectl's own flags: --kubeconfig, --context, --namespace ...
	Config *genericclioptions.ConfigFlags
}

// New reads kubectl's environment and writes to streams.
func New(streams genericiooptions.IOStreams) *Env {
	return &Env{IOStreams: streams, Config: genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300)}
}

// AddFlags gives kubectl's flags to command and all below it.
func (e *Env) AddFlags(command *cobra.Command) { e.Config.AddFlags(command.PersistentFlags()) }

// Namespace that the user chose, by flag or kubeconfig.
func (e *Env) Namespace() (string, error) {
	namespace, _, err := e.Config.ToRawKubeConfigLoader().Namespace()
	return namespace, ClusterError(err)
}

// REST is the access to the cluster.
func (e *Env) REST() (*rest.Config, error) {
	config, err := e.Config.ToRESTConfig()
	if err != nil {
		return nil, ClusterError(err)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "kubectl-mcp/" + version.Version
	// A command reads a handful of objects at once.
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// Client reads and writes objects; it caches nothing.
func (e *Env) Client() (client.WithWatch, error) {
	config, err := e.REST()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: setup.Scheme()})
	return c, ClusterError(err)
}

// Server reads the MCPServer of that name in the chosen namespace.
func (e *Env) Server(ctx context.Context, c client.Client, name string) (*mcpv1.MCPServer, error) {
	namespace, err := e.Namespace()
	if err != nil {
		return nil, err
	}
	server := &mcpv1.MCPServer{}
	err = c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, server)
	switch {
	case apierrors.IsNotFound(err):
		return nil, Hint(fmt.Errorf("there is no MCPServer %q in namespace %q", name, namespace),
			"List them with \"kubectl mcp get\", in all namespaces with -A; choose another namespace with -n.")
	case err != nil:
		return nil, ClusterError(err)
	}
	return server, nil
}

// ClusterError adds to an error of the API what to try; nil for nil.
func ClusterError(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return Hint(err, "Espalier's CRDs are not in this cluster, or of another version. See docs/install.md.")
	case apierrors.IsForbidden(err):
		return Hint(err, "Ask for this right. The ClusterRoles espalier-view and espalier-edit are aggregated into view and edit.")
	case apierrors.IsUnauthorized(err):
		return Hint(err, "Sign in again, or choose another user with --user or --context.")
	}
	return err
}
