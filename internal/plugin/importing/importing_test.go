// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/plugintest"
)

// known is a registry of some images.
func known(_ context.Context, image string) (*start, error) {
	s := map[string]*start{
		"ghcr.io/github/github-mcp-server": {Entrypoint: []string{"/server/github-mcp-server"}, Cmd: []string{"stdio"}, User: "nonroot"},
		"mcp/filesystem:1.0":               {Entrypoint: []string{"node", "/app/dist/index.js"}, Cmd: []string{"/"}},
		"my-server:dev":                    {Cmd: []string{"serve", "--stdio"}, User: "1000:1000"},
		"registry.example.com/silent:1":    {},
	}[image]
	if s == nil {
		return nil, errors.New("no such image")
	}
	return s, nil
}

// imported runs the command with a registry of its own.
func imported(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return plugintest.Run(t, func(e *env.Env) *cobra.Command {
		c := &command{Env: e, inspect: known}
		return c.cobra()
	}, args...)
}

// What is written and said of configurations as people have them. test/api
// applies each of these files.
func TestGolden(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		args []string
		code int
	}{
		"claude":           {"claude.json", nil, env.ExitNo},
		"claude-images":    {"claude.json", []string{"--image", "notes=registry.example.com/notes:1", "--image=Notes=registry.example.com/notes:2", "--npx-image=node:20", "--uvx-image=uv:1"}, env.ExitNo},
		"docker":           {"docker.json", nil, env.ExitNo},
		"docker-told":      {"docker.json", []string{"--offline", "--entrypoint", "github=/server/github-mcp-server stdio", "--entrypoint", "files=node index.js --x=a,b", "--image", "mine=registry.example.com/mine:1"}, env.ExitNo},
		"vscode":           {"vscode.json", nil, env.ExitNo},
		"vscode-answered":  {"vscode.json", []string{"--input", "token=swordfish-9", "--input=region=eu", "--input=HOME_TOKEN=swordfish-8", "--input=MCP_HOST=mcp.example.com"}, env.ExitOK},
		"vscode-reference": {"vscode.json", []string{"--secrets=reference"}, env.ExitNo},
		"remote":           {"remote.json", nil, env.ExitNo},
		"remote-kept":      {"remote.json", []string{"--keep-url-credentials"}, env.ExitNo},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, code := imported(t, append(test.args, filepath.Join("testdata", test.file))...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			plugintest.Golden(t, name+".yaml", stdout)
			plugintest.Golden(t, name+".txt", stderr)
		})
	}
}

// No credential of the examples is in what may be seen by all: what is
// written beside --split-secrets, and what is said.
func TestCredentialsAreApart(t *testing.T) {
	for _, file := range []string{"claude.json", "docker.json", "vscode.json", "remote.json"} {
		path := filepath.Join("testdata", file)
		secrets := filepath.Join(t.TempDir(), "secrets.yaml")
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		stdout, stderr, _ := imported(t, path, "--split-secrets", secrets, "--image=notes=a/b", "--input=token=swordfish-9")
		if strings.Contains(stdout+stderr, "swordfish") || strings.Contains(stdout+stderr, "c3dvcmRm") || strings.Contains(stdout, "kind: Secret") {
			t.Errorf("%s: a credential is in\n%s%s", file, stdout, stderr)
		}
		written, err := os.ReadFile(secrets)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(secrets)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", secrets, info.Mode())
		}
		if bytes.Contains(raw, []byte("swordfish-2")) && file == "claude.json" && !bytes.Contains(written, []byte("swordfish-2")) {
			t.Errorf("%s lacks a credential:\n%s", secrets, written)
		}
		stdout, stderr, _ = imported(t, path, "--secrets=reference", "--input=token=swordfish-9")
		if strings.Contains(stdout+stderr, "swordfish") || strings.Contains(stdout, "kind: Secret") {
			t.Errorf("%s: a credential is in\n%s%s", file, stdout, stderr)
		}
	}
}

func TestRefused(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "mcp.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write(`{"mcpServers": {"a": {"url": "https://example.com"}}}`)
	for want, args := range map[string][]string{
		"no such file":                    {filepath.Join(t.TempDir(), "none.json")},
		"it is not JSON at line 2":        {write("{\n\"a\": swordfish}")},
		"it is not a JSON object":         {write(`["swordfish"]`)},
		`it has no "mcpServers"`:          {write(`{"theme": "swordfish"}`)},
		"its servers are not":             {write(`{"mcpServers": ["swordfish"]}`)},
		fmt.Sprint(maxFile+1, " bytes"):   {write(strings.Repeat(" ", maxFile+1))},
		"--secrets is write or reference": {good, "--secrets=none"},
		"leave one out":                   {good, "--secrets=reference", "--split-secrets=x"},
		"NAME=VALUE":                      {good, "--image=a"},
		"accepts 1 arg":                   {},
	} {
		stdout, stderr, code := imported(t, args...)
		if code != env.ExitError || !strings.Contains(stderr, want) || strings.Contains(stderr, "swordfish") || stdout != "" {
			t.Errorf("%v: exit code %d, said %q, want %q", args, code, stderr, want)
		}
	}
}

// The shapes that a file may have.
func TestShapes(t *testing.T) {
	const one = `{"a": {"url": "https://example.com"}}`
	for _, text := range []string{
		`{"mcpServers": ` + one + `}`, `{"servers": ` + one + `, "inputs": 7}`, `{"mcp": {"servers": ` + one + `}}`,
		"\xef\xbb\xbf" + `{"mcpServers": ` + one + `} // end`, one, `{"customizations": {"vscode": {"mcp": {"servers": ` + one + `}}}}`,
	} {
		c, err := parse([]byte(text))
		if err != nil || len(c.entries) != 1 || c.entries[0].url != "https://example.com" {
			t.Errorf("%s: %v, %v", text, c, err)
		}
	}
}

// The command lines that a shell is given give the words back, with the
// private ones from variables.
func TestShellLine(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	words := []string{"printf", "%s|", "it's", "$HOME `id` $(id)", "", "a  b", "--token", "swordfish 'quoted' $x", "--key=sword\nfish", "*", "~", `\`, "--x=", "a=b"}
	c := &conversion{Options: &Options{}, result: &result{name: "a", asked: map[string]string{}}}
	c.process("image", words, nil, true)
	s := c.spec.Stdio
	cmd := exec.CommandContext(t.Context(), shell, append(s.Command[1:], s.Args...)...)
	for _, e := range s.Env {
		for _, k := range c.secret.keys {
			if e.ValueFrom.SecretKeyRef.Key == k.key {
				cmd.Env = append(cmd.Env, e.Name+"="+k.value)
			}
		}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(words[2:], "|") + "|"; len(cmd.Env) != 2 || string(out) != want || strings.Contains(s.Args[0], "sword") {
		t.Errorf("%q gives %q, want %q; %d variables", s.Args, out, want, len(cmd.Env))
	}
}

// The bounds are those of the CRD.
func TestBounds(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", "mcp.espalier.dev_mcpservers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(raw, crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	stdio, external := spec["stdio"].Properties, spec["external"].Properties
	for what, bound := range map[string]struct {
		got  int
		want *int64
	}{
		"command": {maxCommand, stdio["command"].MaxItems}, "args": {maxArgs, stdio["args"].MaxItems}, "env": {maxEnv, stdio["env"].MaxItems},
		"headers": {maxHeaders, external["headers"].MaxItems}, "a word": {maxWord, stdio["args"].Items.Schema.MaxLength},
		"url": {maxURL, external["url"].MaxLength}, "image": {maxImage, stdio["image"].MaxLength},
	} {
		if bound.want == nil || int64(bound.got) != *bound.want {
			t.Errorf("%s: %d, and the CRD has %v", what, bound.got, bound.want)
		}
	}
}
