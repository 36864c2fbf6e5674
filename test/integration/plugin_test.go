// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/why"
)

// people run the plugin in a world's namespace.
type people struct {
	*world
	kubeconfig string
}

// kubectlMCP runs the plugin as a user, or as an administrator for an empty
// name, and gives what it printed and its exit code.
func (p *people) kubectlMCP(user string, args ...string) (stdout, stderr string, code int) {
	p.Helper()
	var out, errOut bytes.Buffer
	code = p.start(p.ctx, user, &out, &errOut, args...)
	return out.String(), errOut.String(), code
}

func (p *people) start(ctx context.Context, user string, out, errOut io.Writer, args ...string) int {
	args = append(args, "--kubeconfig="+p.kubeconfig, "--namespace="+p.key("").Namespace)
	if user != "" {
		args = append(args, "--as="+user)
	}
	return plugin.Run(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errOut}, args)
}

// viewer is a user who may read our kinds in the namespace, and nothing else.
func (p *people) viewer() string {
	p.Helper()
	namespace := p.key("").Namespace
	user := "viewer-of-" + namespace
	must(p.T, api.Client.Create(p.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{mcpv1.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	}))
	must(p.T, api.Client.Create(p.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "viewer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "viewer"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}))
	return user
}

// TestPluginReads: get and why say what is proved, whether that is fresh by the
// Lease, and go on where their user may not look.
func TestPluginReads(t *testing.T) {
	p := &people{newWorld(t), api.Kubeconfig(t)}
	p.server(`{publicURL: "https://mcp.example.com/web", tools: {max: 5}}`)
	p.tool("alpha", `expression: {text: "'a'"}`)
	p.serve()
	p.toolBecomes("alpha", isServed)
	viewer := p.viewer()

	p.says("no operator ever led", 0, "", []string{"get"}, "Unknown", "No operator works on this namespace")
	leader := newCandidate(t, p.key("").Namespace)
	p.eventually(soon, "the operator", func() string { return map[bool]string{true: "", false: "it does not lead"}[leader.leading.Load()] })
	p.says("proved and fresh", 0, "", []string{"get"}, "web    Ready    Proved   1/1        1", "fresh\n", "1 server: 1 ready; 1 tool proved.", "Proofs are fresh")
	p.says("who may not list Leases", 0, viewer, []string{"get"}, "Ready", "?\n", "you may not list Leases")
	p.says("by name", 0, "", []string{"get", "web", "-o", "name"}, "mcpserver.mcp.espalier.dev/web\n")
	p.says("as a client's file", 0, "", []string{"get", "-o", "clientconfig"}, `"url": "https://mcp.example.com/web"`)
	p.says("a name that is none", 2, "", []string{"get", "nobody"}, `there is no MCPServer "nobody"`, "-A")
	p.says("a format that is none", 2, "", []string{"get", "-o", "xml"}, "clientconfig")

	p.says("ready", 0, "", []string{"why", "web"}, "MCPServer "+p.key("").Namespace+"/web is ready (Proved)", "ok        The one replica that takes traffic answered as an MCP server.")
	p.says("a tool that is served", 0, "", []string{"why", "tool/alpha"}, "is served (Served)")
	p.says("who may read little", 0, viewer, []string{"why", "web"}, "is ready", "Not read: pods (you may not read them).", "Not read: deployments")
	p.says("no such tool", 2, "", []string{"why", "tool/web"}, `there is no MCPTool "web"`)
	p.says("no such kind", 2, "", []string{"why", "pod/web"}, "Kinds are server, tool, resource and prompt.")

	leader.stop()
	p.says("no operator lives", 0, "", []string{"get"}, "Unknown", "not known since", "No operator lives")
	out, _, code := p.kubectlMCP("", "why", "web", "-o", "json")
	var d why.Diagnosis
	must(t, json.Unmarshal([]byte(out), &d))
	if code != env.ExitNo || d.Verdict != why.NotKnown || d.Cause == nil || d.Cause.Name != "operator" {
		t.Errorf("code %d, %s", code, out)
	}
}

// says runs the plugin and looks for texts in what it prints.
func (p *people) says(when string, code int, user string, args []string, texts ...string) {
	p.Helper()
	out, errOut, got := p.kubectlMCP(user, args...)
	if got != code {
		p.Errorf("%s: exit code %d, want %d", when, got, code)
	}
	for _, text := range texts {
		if !strings.Contains(out+errOut, text) {
			p.Errorf("%s: no %q in\n%s%s", when, text, out, errOut)
		}
	}
}

// page is what a run that goes on has printed so far.
type page struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.Write(b)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// TestPluginWatches: get -w prints what changes, and ends when it is told to.
func TestPluginWatches(t *testing.T) {
	p := &people{newWorld(t), api.Kubeconfig(t)}
	p.server(`{}`)
	p.serve()
	p.becomes(map[string]string{"Ready": "True Proved"})
	leader := newCandidate(t, p.key("").Namespace)
	p.eventually(soon, "the operator", func() string { return map[bool]string{true: "", false: "it does not lead"}[leader.leading.Load()] })

	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	var shown page
	ended := make(chan int, 1)
	go func() { ended <- p.start(ctx, "", &shown, &shown, "get", "-w") }()
	holds := func(text string) func() string {
		return func() string {
			if !strings.Contains(shown.String(), text) {
				return "it shows " + shown.String()
			}
			return ""
		}
	}
	p.eventually(soon, "the list", holds("web    Ready    Proved"))
	p.server(`{suspend: true}`)
	p.eventually(soon, "the change", holds("Idle"))
	must(t, api.Client.Delete(p.ctx, p.web()))
	p.eventually(soon, "the end of the server", holds("Deleted"))
	cancel()
	if code := <-ended; code != env.ExitOK {
		t.Errorf("exit code %d: %s", code, shown.String())
	}
}
