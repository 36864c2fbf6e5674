// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package desktop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/clientconfig"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

const kubeconfigFile = `apiVersion: v1
kind: Config
current-context: home
contexts:
- {name: home, context: {cluster: c, user: u, namespace: team}}
- {name: other, context: {cluster: c, user: u}}
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- {name: u, user: {token: very-secret}}
`

func weather() *mcpv1.MCPServer {
	return &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "weather", Namespace: "team"}}
}

// What decides on cluster and user is pinned, by paths that hold anywhere, and
// no credential is among it.
func TestStart(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	if err := os.WriteFile("config", []byte(kubeconfigFile), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "config")
	kubectl := filepath.Join(folder, "kubectl")
	if err := os.WriteFile(kubectl, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		variable, path, command string
		flags                   []string
		want                    clientconfig.Entry
	}{
		"by a variable": {
			variable: "config:", path: folder,
			want: clientconfig.Entry{
				Name: "weather", Command: kubectl, Env: map[string]string{"KUBECONFIG": file},
				Args: []string{"mcp", "connect", "weather", "--context", "home", "--namespace", "team"},
			},
		},
		"by flags": {
			variable: "elsewhere", flags: []string{"--kubeconfig", "config", "--context", "other", "--user", "u", "--cluster", "c", "--as", "me", "--token", "hidden"},
			want: clientconfig.Entry{
				Name: "weather", Command: "kubectl",
				Args: []string{"mcp", "connect", "weather", "--kubeconfig", file, "--context", "other", "--namespace", "team", "--cluster", "c", "--user", "u", "--as", "me"},
			},
		},
		"without kubectl": {
			variable: file, command: "/opt/kubectl-mcp_1.2",
			want: clientconfig.Entry{
				Name: "weather", Command: "/opt/kubectl-mcp_1.2", Env: map[string]string{"KUBECONFIG": file},
				Args: []string{"connect", "weather", "--context", "home", "--namespace", "team"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", tt.variable)
			t.Setenv("PATH", tt.path)
			e := env.New(genericiooptions.NewTestIOStreamsDiscard())
			command := NewConfig(e)
			e.AddFlags(command)
			if err := command.ParseFlags(tt.flags); err != nil {
				t.Fatal(err)
			}
			got, err := (&configuration{Env: e, command: tt.command}).entry(weather())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDirect(t *testing.T) {
	c := &configuration{direct: true}
	if _, err := c.entry(weather()); err == nil || !strings.Contains(err.Error(), "publicURL") {
		t.Errorf("got %v", err)
	}
	public := weather()
	public.Spec.PublicURL = "https://mcp.example.com/weather"
	external := weather()
	external.Spec.External = &mcpv1.Connection{URL: "https://elsewhere.example.com/mcp"}
	for _, server := range []*mcpv1.MCPServer{public, external} {
		want := server.Spec.PublicURL
		if want == "" {
			want = server.Spec.External.URL
		}
		if got, err := c.entry(server); err != nil || got.URL != want || got.Command != "" {
			t.Errorf("got %+v, %v", got, err)
		}
	}
}

// What a server wants of its callers is told by its spec, or by what the
// operator found.
func TestCredential(t *testing.T) {
	keys, tokens := &mcpv1.APIKeyAuth{}, &mcpv1.ServiceAccountAuth{}
	found := weather()
	found.Status.Conditions = []metav1.Condition{{Type: mcpv1.ConditionReady, Status: metav1.ConditionTrue, Reason: mcpv1.ReasonAuthRequired}}
	with := func(auth *mcpv1.Auth) *mcpv1.MCPServer {
		s := weather()
		s.Spec.Auth = auth
		return s
	}
	for _, tt := range []struct {
		server *mcpv1.MCPServer
		has    []string
	}{
		{weather(), nil},
		{found, []string{"Authorization"}},
		{with(&mcpv1.Auth{APIKeys: keys}), []string{"X-API-Key"}},
		{with(&mcpv1.Auth{ServiceAccounts: tokens}), []string{"Authorization"}},
		{with(&mcpv1.Auth{APIKeys: keys, ServiceAccounts: tokens}), []string{"Authorization", "X-API-Key"}},
	} {
		got := credential(tt.server)
		if tt.has == nil && got != "" {
			t.Errorf("got %q", got)
		}
		for _, want := range tt.has {
			if !strings.Contains(got, want) {
				t.Errorf("got %q, want %s in it", got, want)
			}
		}
	}
}

// Standard input is the protocol's, so no token can come from it; what is
// wrong on the command line is told before anything is dialled.
func TestBadFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for want, args := range map[string][]string{
		"standard input belongs to the client": {"http://127.0.0.1:1/mcp", "--token-file", "-"},
		"--header":                             {"http://127.0.0.1:1/mcp", "--header", "Mcp-Session-Id: x"},
		"--wait":                               {"http://127.0.0.1:1/mcp", "--wait", "0s"},
		"scheme":                               {"ftp://127.0.0.1/mcp"},
	} {
		command := NewConnect(env.New(genericiooptions.NewTestIOStreamsDiscard()))
		command.SetArgs(args)
		command.SilenceUsage, command.SilenceErrors = true, true
		if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %s in it", args, err, want)
		}
	}
	command := NewConfig(env.New(genericiooptions.NewTestIOStreamsDiscard()))
	command.SetArgs([]string{"weather", "--client", "emacs"})
	command.SilenceUsage, command.SilenceErrors = true, true
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "emacs") {
		t.Errorf("got %v", err)
	}
	command.SetArgs([]string{"weather", "--client", "claude-desktop", "--direct"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "commands alone") {
		t.Errorf("got %v", err)
	}
}
