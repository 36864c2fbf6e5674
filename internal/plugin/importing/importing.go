// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package importing is "kubectl mcp import": the configuration of a desktop
// client becomes MCPServers, and what looks like a credential in it Secrets.
// It needs no cluster.
package importing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// What packages run in, unless a flag says otherwise.
const (
	DefaultNPXImage = "docker.io/library/node:24-slim"
	DefaultUVXImage = "ghcr.io/astral-sh/uv:python3.13-bookworm-slim"
)

// Where credentials go.
const (
	secretsWrite     = "write"
	secretsReference = "reference"
)

const long = `Turn the configuration of an MCP client into MCPServers and Secrets.

FILE is what Claude Desktop, Claude Code, Cursor, Windsurf or VS Code has, with
"mcpServers" or "servers"; "-" is standard input. YAML goes to standard output.

A server that npx or uvx starts becomes one of type Stdio in an image that has
them, "docker run" one of type Stdio in its image, a url one of type External,
and so does what mcp-remote leads to. What looks like a credential goes into a
Secret, which the spec names. What cannot be carried is said on standard error
and in comments; a server that could not run as it is stands there as a comment,
and the exit code is 1.

An image is asked of its registry how it starts, unless --offline.`

const examples = `  # See what would come of it
  kubectl mcp import ~/.config/Claude/claude_desktop_config.json

  # Servers for Git, Secrets for the cluster alone
  kubectl mcp import .vscode/mcp.json --split-secrets /tmp/secrets.yaml > servers.yaml
  kubectl apply -n team-a -f /tmp/secrets.yaml -f servers.yaml

  # A program that you built an image of
  kubectl mcp import mcp.json --image notes=registry.example.com/notes-mcp:1.2`

// command is an import as the command line says.
type command struct {
	*env.Env
	Options
	secrets, split string
	offline        bool
	inspect        func(ctx context.Context, image string) (*start, error)
}

// NewImport is the command.
func NewImport(e *env.Env) *cobra.Command {
	return (&command{Env: e, inspect: inspect}).cobra()
}

func (c *command) cobra() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "import FILE",
		Short:   "Turn a client's configuration into MCPServers and Secrets",
		Long:    long,
		Example: examples,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.NPXImage, "npx-image", DefaultNPXImage, "image that npx is run in")
	flags.StringVar(&c.UVXImage, "uvx-image", DefaultUVXImage, "image that uvx is run in")
	flags.Var(&named{&c.Images}, "image", "image of a server, as NAME=IMAGE")
	flags.Var(&named{&c.Entrypoints}, "entrypoint", `how the image of a server starts, as NAME="COMMAND ARG"`)
	flags.Var(&named{&c.Inputs}, "input", "what ${input:NAME}, ${env:NAME} or ${NAME} stands for, as NAME=VALUE")
	flags.StringVar(&c.secrets, "secrets", secretsWrite, "write Secrets, or only references to them: write|reference")
	flags.StringVar(&c.split, "split-secrets", "", "file that Secrets go to, apart from what may be seen by all")
	flags.BoolVar(&c.KeepURLCredentials, "keep-url-credentials", false, "leave credentials in URLs of servers elsewhere")
	flags.BoolVar(&c.offline, "offline", false, "ask no registry how an image starts")
	return cmd
}

func (c *command) run(ctx context.Context, file string) error {
	switch {
	case c.secrets != secretsWrite && c.secrets != secretsReference:
		return fmt.Errorf("--secrets is %s or %s", secretsWrite, secretsReference)
	case c.secrets == secretsReference && c.split != "":
		return errors.New("--split-secrets writes Secrets, and --secrets=reference does not: leave one out")
	}
	raw, err := c.read(file)
	if err != nil {
		return err
	}
	in, err := parse(raw)
	if err != nil {
		return env.Hint(fmt.Errorf("%s: %w", file, err), `Expected is the configuration of a client: {"mcpServers": {"NAME": {"command": ...}}}.`)
	}
	if !c.offline {
		c.Inspect = c.inspect
	}
	results := c.convert(ctx, in)
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.write(title(file), results)
}

// title of a file for a comment: its name without its folder, which may tell
// of its user.
func title(file string) string {
	if file == "-" {
		return "standard input"
	}
	return printable(filepath.Base(file))
}

func (c *command) read(file string) ([]byte, error) {
	in := c.In
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, env.Hint(err, "Claude Desktop has claude_desktop_config.json, Cursor .cursor/mcp.json, VS Code .vscode/mcp.json.")
		}
		defer func() { _ = opened.Close() }()
		in = opened
	}
	return io.ReadAll(io.LimitReader(in, maxFile+1))
}

// write writes YAML, and says what was not carried.
func (c *command) write(file string, results []*result) error {
	namespace := ""
	if c.Config != nil && c.Config.Namespace != nil {
		namespace = *c.Config.Namespace
	}
	w := &writer{namespace: namespace, file: file, reference: c.secrets == secretsReference, apart: c.split != ""}
	servers, secrets, err := w.all(results)
	if err != nil {
		return err
	}
	if c.split != "" && secrets != "" {
		if err := os.WriteFile(c.split, []byte(secrets), 0o600); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c.Out, servers); err != nil {
		return err
	}
	return c.tell(results)
}

// tell says on standard error what was made, what was not carried, and what
// is left to do.
func (c *command) tell(results []*result) error {
	made, values, open, left := 0, 0, 0, 0
	for _, r := range results {
		if r.leftOut != "" {
			left++
			fmt.Fprintf(c.ErrOut, "%s: left out: %s\n", printable(r.from), r.leftOut)
		} else {
			made++
			for _, k := range r.secret.keys {
				if values++; len(k.open) > 0 {
					open++
				}
			}
		}
		for _, note := range r.notes {
			fmt.Fprintf(c.ErrOut, "%s: %s\n", printable(r.from), note)
		}
	}
	var parts []string
	parts = append(parts, env.Count(made, "server"))
	if values > 0 {
		where := "in Secrets"
		if c.secrets == secretsReference {
			where = "referenced in Secrets that are not written"
		} else if c.split != "" {
			where = "in Secrets in " + c.split
		}
		parts = append(parts, env.Count(values, "value")+" "+where)
	}
	if open > 0 {
		parts = append(parts, fmt.Sprintf("%d of them for you to fill in", open))
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("%d left out", left))
	}
	fmt.Fprintln(c.ErrOut, strings.Join(parts, ", "))
	if left > 0 {
		return env.No
	}
	return nil
}

// named is a flag that may be given several times, as NAME=VALUE.
type named struct{ values *map[string]string }

// Set takes one.
func (n *named) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("expected is NAME=VALUE")
	}
	if *n.values == nil {
		*n.values = map[string]string{}
	}
	(*n.values)[name] = value
	return nil
}

// String has no default to tell.
func (n *named) String() string { return "" }

// Type is what the help calls it.
func (n *named) Type() string { return "NAME=VALUE" }
