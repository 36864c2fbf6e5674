// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package desktop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/clientconfig"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// desk is one of the clients whose configuration is known.
type desk struct {
	name  string
	write func([]clientconfig.Entry) ([]byte, error)
	// file is where the client reads it.
	file string
	// local: it starts commands, and reads no URL from its file.
	local bool
}

var desks = []desk{
	{"generic", clientconfig.Generic, "the client's own configuration of MCP servers", false},
	{"claude-desktop", clientconfig.ClaudeDesktop, "claude_desktop_config.json (in the app: Settings, Developer, Edit Config)", true},
	{"vscode", clientconfig.VSCode, ".vscode/mcp.json, or what \"MCP: Open User Configuration\" opens", false},
	{"cursor", clientconfig.Cursor, ".cursor/mcp.json, or ~/.cursor/mcp.json", false},
}

func deskNames() []string {
	var out []string
	for _, d := range desks {
		out = append(out, d.name)
	}
	return out
}

// configuration is one run of "kubectl mcp config".
type configuration struct {
	*env.Env
	client  string
	command string
	direct  bool
}

// NewConfig makes "kubectl mcp config".
func NewConfig(e *env.Env) *cobra.Command {
	c := &configuration{Env: e}
	command := &cobra.Command{
		Use:   "config SERVER...",
		Short: "Print a client's configuration that uses a server",
		Long: `Print what a client on this machine needs in its configuration to use a server.

The client will start "kubectl mcp connect", with the context and the namespace
of now. With --direct it is given the server's publicURL instead. A credential
is never written: what must be added is told on standard error.`,
		Example: `  kubectl mcp config weather --client claude-desktop
  kubectl mcp config weather files --client vscode > .vscode/mcp.json
  kubectl mcp config weather --client cursor --direct`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: complete.Servers(e),
		RunE:              func(command *cobra.Command, args []string) error { return c.run(command.Context(), args) },
	}
	flags := command.Flags()
	flags.StringVar(&c.client, "client", "generic", "Whose configuration: "+strings.Join(deskNames(), ", ")+".")
	flags.StringVar(&c.command, "command", "", "The program that the client starts: kubectl, or kubectl-mcp itself. Default is the path of kubectl, since clients have another PATH.")
	flags.BoolVar(&c.direct, "direct", false, "Let the client call spec.publicURL by itself.")
	_ = command.RegisterFlagCompletionFunc("client", cobra.FixedCompletions(deskNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func (c *configuration) run(ctx context.Context, names []string) error {
	i := slices.IndexFunc(desks, func(d desk) bool { return d.name == c.client })
	if i < 0 {
		return env.Hint(fmt.Errorf("--client %q is not known", c.client), "There are: "+strings.Join(deskNames(), ", "))
	}
	d := desks[i]
	if c.direct && d.local {
		return env.Hint(errors.New("the configuration of "+d.name+" has commands alone"),
			"Add the URL in the app (Settings, Connectors), or leave out --direct.")
	}
	objects, err := c.Client()
	if err != nil {
		return err
	}
	var entries []clientconfig.Entry
	var notes []string
	for _, name := range names {
		server, err := c.Server(ctx, objects, name)
		if err != nil {
			return err
		}
		entry, err := c.entry(server)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
		if wanted := credential(server); wanted != "" {
			notes = append(notes, fmt.Sprintf("%s wants a credential: %s. %s", name, wanted, howTo(c.direct)))
		}
	}
	text, err := d.write(entries)
	if err != nil {
		return err
	}
	if _, err := c.Out.Write(text); err != nil {
		return err
	}
	fmt.Fprintf(c.ErrOut, "Merge it into %s.\n", d.file)
	for _, note := range notes {
		fmt.Fprintln(c.ErrOut, note)
	}
	return nil
}

func (c *configuration) entry(server *mcpv1.MCPServer) (clientconfig.Entry, error) {
	if !c.direct {
		return c.start(server)
	}
	url := server.Spec.PublicURL
	if url == "" && server.Spec.External != nil {
		url = server.Spec.External.URL
	}
	if url == "" {
		return clientconfig.Entry{}, env.Hint(fmt.Errorf("MCPServer %q has no spec.publicURL, and its own URL works inside the cluster only", server.Name),
			"Expose it and set spec.publicURL (docs/network.md), or leave out --direct.")
	}
	return clientconfig.Entry{Name: server.Name, URL: url}, nil
}

// start is the entry that starts "kubectl mcp connect". What decides on the
// cluster and the user now does so then, too.
func (c *configuration) start(server *mcpv1.MCPServer) (clientconfig.Entry, error) {
	out := clientconfig.Entry{Name: server.Name, Command: c.program()}
	if !strings.HasPrefix(filepath.Base(out.Command), "kubectl-mcp") {
		out.Args = append(out.Args, "mcp")
	}
	out.Args = append(out.Args, "connect", server.Name)
	raw, err := c.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return out, env.ClusterError(err)
	}
	add := func(flag, value string) {
		if value != "" {
			out.Args = append(out.Args, flag, value)
		}
	}
	given := func(value *string) string {
		if value == nil {
			return ""
		}
		return *value
	}
	switch file := given(c.Config.KubeConfig); {
	case file != "":
		if file, err = filepath.Abs(file); err != nil {
			return out, err
		}
		add("--kubeconfig", file)
	case os.Getenv("KUBECONFIG") != "":
		// Clients do not start with the environment of a shell.
		if out.Env, err = kubeconfig(os.Getenv("KUBECONFIG")); err != nil {
			return out, err
		}
	}
	name := given(c.Config.Context)
	if name == "" {
		name = raw.CurrentContext
	}
	add("--context", name)
	add("--namespace", server.Namespace)
	add("--cluster", given(c.Config.ClusterName))
	add("--user", given(c.Config.AuthInfoName))
	add("--as", given(c.Config.Impersonate))
	return out, nil
}

// kubeconfig is the variable with absolute paths.
func kubeconfig(list string) (map[string]string, error) {
	var paths []string
	for _, path := range filepath.SplitList(list) {
		if path == "" {
			continue
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, full)
	}
	return map[string]string{"KUBECONFIG": strings.Join(paths, string(filepath.ListSeparator))}, nil
}

// program is what the client starts, by its full path where that is known.
func (c *configuration) program() string {
	const usual = "kubectl"
	if c.command != "" {
		return c.command
	}
	path, err := exec.LookPath(usual)
	if err != nil {
		return usual
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return usual
}

// credential says what a caller of server has to show; empty for nothing.
func credential(server *mcpv1.MCPServer) string {
	auth := server.Spec.Auth
	ready := meta.FindStatusCondition(server.Status.Conditions, mcpv1.ConditionReady)
	switch {
	case auth != nil && auth.APIKeys != nil && auth.JWT == nil && auth.ServiceAccounts == nil:
		return "an API key, as the header \"X-API-Key: KEY\""
	case auth != nil && auth.APIKeys != nil:
		return "the header \"Authorization: Bearer TOKEN\", or \"X-API-Key: KEY\""
	case auth != nil, ready != nil && ready.Reason == mcpv1.ReasonAuthRequired:
		return "the header \"Authorization: Bearer TOKEN\""
	}
	return ""
}

func howTo(direct bool) string {
	if direct {
		return "Add it by the client's own means."
	}
	return "Add to args: \"--token-file\", \"FILE\" for a token, or \"--header\", \"NAME: VALUE\"."
}
