// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
)

type options struct {
	*env.Env
	output   string
	logLines int64
}

// kinds by the word before the slash.
var kinds = map[string]catalog.Kind{"tool": catalog.KindTool, "resource": catalog.KindResource, "prompt": catalog.KindPrompt}

const serverKind catalog.Kind = "MCPServer"

// NewWhy is "kubectl mcp why".
func NewWhy(e *env.Env) *cobra.Command {
	o := &options{Env: e}
	command := &cobra.Command{
		Use:   "why SERVER | tool/NAME | resource/NAME | prompt/NAME",
		Short: "Say why something is not ready, and what to do",
		Long: `Walk from the spec of a server to what its clients are given, and say what
stands in the way first, the evidence for it, and what to do.

The exit code is 0 when it is ready and 1 when it is not, or when that is not
known. Without a living operator the pods are looked at, and an old status is
not believed.

The last lines of a troubled pod's log are shown; --log-lines=0 shows none.`,
		Example: `  kubectl mcp why weather
  kubectl mcp why tool/get-forecast -n team-a`,
		Args:              cobra.MatchAll(exactlyOne),
		ValidArgsFunction: complete.First(complete.Servers(e)),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	command.Flags().StringVarP(&o.output, "output", "o", "", "Print in another format: json.")
	command.Flags().Int64Var(&o.logLines, "log-lines", 5, "How many of the last lines of a troubled pod's log are shown.")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

func exactlyOne(_ *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return env.Hint(fmt.Errorf("one name is needed, and %d are given", len(args)), "Name a server, or tool/NAME, resource/NAME, prompt/NAME. \"kubectl mcp get\" lists servers.")
}

// parse reads SERVER or KIND/NAME, with the kinds as kubectl writes them, too.
func parse(arg string) (catalog.Kind, string, error) {
	word, name, slash := strings.Cut(arg, "/")
	if !slash {
		return serverKind, arg, nil
	}
	short := strings.ToLower(strings.TrimSuffix(word, ".mcp.espalier.dev"))
	short = strings.TrimSuffix(strings.TrimPrefix(short, "mcp"), "s")
	if short == "server" {
		return serverKind, name, nil
	}
	if kind, ok := kinds[short]; ok && name != "" {
		return kind, name, nil
	}
	return "", "", env.Hint(fmt.Errorf("%q is neither a server nor KIND/NAME", arg), "Kinds are server, tool, resource and prompt.")
}

func (o *options) run(ctx context.Context, arg string) error {
	if o.output != "" && o.output != "json" {
		return env.Hint(fmt.Errorf("there is no output format %q", o.output), "The one format beside text is json.")
	}
	kind, name, err := parse(arg)
	if err != nil {
		return err
	}
	g, err := o.gatherer(ctx)
	if err != nil {
		return err
	}
	d, err := g.diagnose(ctx, kind, name)
	if err != nil {
		return err
	}
	if o.output == "json" {
		encoder := json.NewEncoder(o.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(d); err != nil {
			return err
		}
	} else {
		Render(o.Out, d, o.Style(), o.Width())
	}
	if d.Verdict != Ready {
		return env.No
	}
	return nil
}

func (o *options) gatherer(ctx context.Context) (*gatherer, error) {
	namespace, err := o.Namespace()
	if err != nil {
		return nil, err
	}
	config, err := o.REST()
	if err != nil {
		return nil, err
	}
	g := &gatherer{namespace: namespace, logLines: o.logLines}
	if g.client, err = o.Client(); err != nil {
		return nil, err
	}
	if g.clientset, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	looker, err := operator.NewLooker(o.Env)
	if err != nil {
		return nil, err
	}
	if g.state, err = looker.Look(ctx); err != nil {
		return nil, err
	}
	return g, g.read(ctx)
}

// diagnose gathers the facts of one object and judges them.
func (g *gatherer) diagnose(ctx context.Context, kind catalog.Kind, name string) (*Diagnosis, error) {
	if kind != serverKind {
		return g.diagnoseRegistration(ctx, kind, name)
	}
	server := g.servers[name]
	if server == nil {
		return nil, env.Hint(fmt.Errorf("there is no MCPServer %q in namespace %q", name, g.namespace),
			"List them with \"kubectl mcp get\", in all namespaces with -A; choose another namespace with -n.")
	}
	f, err := g.server(ctx, server)
	if err != nil {
		return nil, err
	}
	return Diagnose(f), nil
}

func (g *gatherer) diagnoseRegistration(ctx context.Context, kind catalog.Kind, name string) (*Diagnosis, error) {
	at := slices.IndexFunc(g.registrations, func(r mcpv1.Registration) bool { return catalog.KindOf(r) == kind && r.GetName() == name })
	if at < 0 {
		return nil, g.noRegistration(kind, name)
	}
	registration := g.registrations[at]
	r := &RegistrationFacts{Registration: registration, Life: g.state.Of(g.namespace), Now: g.state.Now, Unread: g.unread}
	spec := registration.GetRegistrationSpec()
	names := map[string]bool{}
	for _, ref := range spec.ServerRefs {
		names[ref.Name] = true
		if g.servers[ref.Name] == nil {
			r.Missing = append(r.Missing, ref.Name)
		}
	}
	for _, server := range sortedServers(g.servers) {
		if !names[server.Name] && !catalog.Selects(registration, server) {
			continue
		}
		f, err := g.server(ctx, server)
		if err != nil {
			return nil, err
		}
		r.Servers = append(r.Servers, f)
	}
	return DiagnoseRegistration(r), nil
}

// noRegistration says that there is none of that name, and who lists an entry
// that is called so on the wire.
func (g *gatherer) noRegistration(kind catalog.Kind, name string) error {
	err := fmt.Errorf("there is no %s %q in namespace %q", kind, name, g.namespace)
	for _, r := range g.registrations {
		if catalog.KindOf(r) == kind && catalog.Compile(r).Name() == name {
			return env.Hint(err, fmt.Sprintf("%s is called so by clients: kubectl mcp why %s -n %s", registrationName(r), registrationName(r), g.namespace))
		}
	}
	for _, server := range sortedServers(g.servers) {
		for _, tool := range server.Status.Tools {
			if kind == catalog.KindTool && tool.Name == name {
				return env.Hint(err, fmt.Sprintf("MCPServer %s lists a tool of that name that no MCPTool declares: kubectl mcp why %s -n %s", server.Name, server.Name, g.namespace))
			}
		}
	}
	return env.Hint(err, fmt.Sprintf("List them: kubectl get %ss -n %s. Choose another namespace with -n.", strings.ToLower(string(kind)), g.namespace))
}

func sortedServers(servers map[string]*mcpv1.MCPServer) []*mcpv1.MCPServer {
	out := make([]*mcpv1.MCPServer, 0, len(servers))
	for _, server := range servers {
		out = append(out, server)
	}
	slices.SortFunc(out, func(a, b *mcpv1.MCPServer) int { return strings.Compare(a.Name, b.Name) })
	return out
}
