// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package call is "kubectl mcp call": one call of a tool, as a person or a
// script makes it.
package call

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/complete"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
	"github.com/espalier-dev/espalier/internal/schema"
)

type command struct {
	*env.Env
	reach.Selection
	args, argsFile string
	unchecked      bool
	output         string
	save           string
	logLevel       string
	answers        []string
	defaults       bool
	noInput        bool
}

// formats of -o; text is without.
var formats = []string{"text", "json", "result"}

// levels of log messages, the least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// New makes "call".
func New(e *env.Env) *cobra.Command {
	c := &command{Env: e}
	out := &cobra.Command{
		Use:   "call SERVER TOOL [name=value ...]",
		Short: "Call a tool",
		Long: `Call a tool of a server and print what it gives.

SERVER is an MCPServer of the namespace, reached through the API server, or the
URL of any MCP server that this machine reaches.

Arguments are typed by the tool's inputSchema: name=value, name.inner=value for
what is nested, name:=JSON for a value in JSON, name=value more than once for a
list; or all at once with --args or --args-file.

Text goes to standard output. -o json prints the structured content, or
{"content": [...]} where there is none; -o result the whole result as the server
wrote it. Images, audio and other bytes go to files with --save.

Exit code 1 says that the tool answered with isError, 2 that there is no answer.`,
		Example: `  kubectl mcp call weather forecast city=Oslo days=3
  kubectl mcp call weather forecast --args '{"city": "Oslo", "days": 3}' -o json
  kubectl mcp call charts draw kind=bar --save pictures
  kubectl mcp call https://mcp.example.com/mcp search query=news --token-file token`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: c.complete,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.run(cmd.Context(), args[0], args[1], args[2:]) },
	}
	flags := out.Flags()
	c.AddTo(flags, false)
	flags.StringVar(&c.args, "args", "", "All arguments as one JSON object.")
	flags.StringVar(&c.argsFile, "args-file", "", "File with all arguments as one JSON object, - for standard input.")
	flags.BoolVar(&c.unchecked, "unchecked", false, "Send arguments that do not fit the tool's inputSchema, and call a tool that is not listed.")
	flags.StringVarP(&c.output, "output", "o", "text", "Output format: "+strings.Join(formats, ", ")+".")
	flags.StringVar(&c.save, "save", "", "Folder to save images, audio and other bytes of the result in.")
	flags.StringVar(&c.logLevel, "log-level", "", "Show the server's log messages from this level on, on standard error: "+strings.Join(levels, ", ")+".")
	flags.StringArrayVar(&c.answers, "answer", nil, "An answer to what the server may ask during the call, as name=value. May be repeated.")
	flags.BoolVar(&c.defaults, "answer-defaults", false, "Answer what the server asks with its own defaults.")
	flags.BoolVar(&c.noInput, "no-input", false, "Ask nobody, not on a terminal either.")
	complete.Pods(out, e)
	_ = out.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = out.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp))
	return out
}

func (c *command) run(ctx context.Context, server, tool string, words []string) error {
	given, err := c.check(words)
	if err != nil {
		return err
	}
	ctx, cancel := c.Within(ctx)
	defer cancel()
	endpoints, err := c.Endpoints(ctx, c.Env, server)
	if err != nil {
		return err
	}
	p := endpoints[0]
	shown := newProgress(c.Env)
	asking, err := c.asking(shown)
	if err != nil {
		return err
	}
	session, err := reach.Session(ctx, p, asking.forSession(c.notify(shown)))
	if err != nil {
		return err
	}
	defer session.Close(context.WithoutCancel(ctx))
	request, err := c.request(ctx, session, p, server, tool, words, given)
	if err != nil {
		return err
	}
	if c.logLevel != "" && !mcp.IsModern(session.Version()) {
		if err := session.SetLevel(ctx, c.logLevel); err != nil {
			fmt.Fprintf(c.ErrOut, "The server does not take --log-level: %v\n", reach.Explain(p, err))
		}
	}
	if asking != nil || c.logLevel != "" {
		defer c.listen(ctx, session)()
	}
	request.LogLevel, request.Progress, request.Notify = c.logLevel, shown.hear, c.notify(shown)
	raw, err := asking.rounds(ctx, session, request)
	shown.end()
	if err != nil {
		return reach.Explain(p, err)
	}
	return c.print(tool, raw)
}

// standWait is how long a server may take to open the stream of what it says by
// itself, before the call is made without.
const standWait = 3 * time.Second

// listen opens that stream of a legacy server, since questions and log messages
// may come there, and gives what ends it.
func (c *command) listen(ctx context.Context, session *client.Session) (end func()) {
	if mcp.IsModern(session.Version()) {
		return func() {} // All comes with the answer.
	}
	ctx, cancel := context.WithCancel(ctx)
	standing, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		// A server without one says all beside the answer.
		_, _ = session.Listen(ctx, func() { close(standing) })
	}()
	timer := time.NewTimer(standWait)
	defer timer.Stop()
	select {
	case <-standing:
	case <-over:
	case <-timer.C:
	}
	return func() {
		cancel()
		<-over
	}
}

// check refuses what is wrong before anything is dialled, and gives what
// --args or --args-file says.
func (c *command) check(words []string) (json.RawMessage, error) {
	switch {
	case !slices.Contains(formats, c.output):
		return nil, fmt.Errorf("-o %s is not known here: %s", c.output, strings.Join(formats, ", "))
	case c.logLevel != "" && !slices.Contains(levels, c.logLevel):
		return nil, fmt.Errorf("--log-level %s is none: %s", c.logLevel, strings.Join(levels, ", "))
	case c.args != "" && c.argsFile != "", (c.args != "" || c.argsFile != "") && len(words) > 0:
		return nil, errors.New("give the arguments one way: by name=value, by --args or by --args-file")
	}
	raw := []byte(c.args)
	if c.argsFile != "" {
		var err error
		if raw, err = c.readFile(c.argsFile); err != nil {
			return nil, fmt.Errorf("--args-file: %w", err)
		}
	}
	if len(raw) == 0 && c.argsFile == "" {
		for _, word := range words {
			if _, _, _, err := split(word); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
	raw = []byte(strings.TrimSpace(string(raw)))
	if _, err := wire.DecodeObject(raw); err != nil {
		return nil, env.Hint(errors.New("the arguments are no JSON object"), argsHint)
	}
	return raw, nil
}

func (c *command) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.In)
	}
	return os.ReadFile(name)
}

// request makes the call, typed and checked by the tool's definition.
func (c *command) request(ctx context.Context, session *client.Session, p *reach.Endpoint, server, tool string, words []string, given json.RawMessage) (*client.Call, error) {
	lists, err := session.Lists(ctx)
	if err != nil && !c.unchecked {
		return nil, reach.Explain(p, err)
	}
	var definition json.RawMessage
	var names []string
	if lists != nil {
		for _, one := range lists.Tools {
			names = append(names, one.Name)
			if one.Name == tool {
				definition = one.Definition
			}
		}
	}
	if definition == nil && !c.unchecked {
		return nil, noTool(p.Where(server), tool, names)
	}
	out := &client.Call{Tool: tool, Args: given}
	input := inputSchema(definition)
	if given == nil {
		if out.Args, err = assemble(words, shapeOf(input)); err != nil {
			return nil, err
		}
	}
	return out, c.fit(out, input, mcp.IsModern(session.Version()))
}

// fit checks the arguments by the schema, and mirrors those that it wants
// mirrored. What cannot be compiled here is the server's to check.
func (c *command) fit(out *client.Call, input json.RawMessage, modern bool) error {
	compiled, err := schema.CompileInput(input)
	if modern && errors.Is(err, schema.ErrHeaders) {
		return env.Hint(fmt.Errorf("tool %q must not be called: %s", out.Tool, env.Line(err.Error())), "The server's author has to mend its inputSchema.")
	}
	if err != nil {
		compiled = schema.Unchecked()
	}
	value, err := wire.Decode(out.Args)
	args, ok := value.(map[string]any)
	if err != nil || !ok {
		return env.Hint(errors.New("the arguments are no JSON object"), argsHint)
	}
	if !c.unchecked {
		if err := missing(out.Args, shapeOf(input)); err != nil {
			return err
		}
		if err := compiled.Validate(args); err != nil && !errors.Is(err, schema.ErrExpansion) {
			return env.Hint(fmt.Errorf("the arguments do not fit tool %q: %s", out.Tool, env.Line(err.Error())), "--unchecked sends them all the same.")
		}
	}
	compiled.Coerce(args)
	out.Header = client.Mirror(compiled.Headers(), args)
	return nil
}

func inputSchema(definition json.RawMessage) json.RawMessage {
	object, err := wire.DecodeObject(definition)
	if err != nil {
		return nil
	}
	return object.Get("inputSchema")
}

// noTool says which there are.
func noTool(where, tool string, names []string) error {
	err := fmt.Errorf("%s has no tool %q", where, tool)
	if len(names) == 0 {
		return env.Hint(err, "It lists no tools at all.")
	}
	const few = 20
	more := ""
	if len(names) > few {
		more = fmt.Sprintf(" and %d more", len(names)-few)
		names = names[:few]
	}
	return env.Hint(err, "It has: "+env.Line(strings.Join(names, ", "))+more+".")
}

// notify shows what the server logs.
func (c *command) notify(shown *progress) func(method string, params json.RawMessage) {
	return func(method string, params json.RawMessage) {
		object, err := wire.DecodeObject(params)
		if err != nil || method != mcp.NotificationMessage || c.logLevel == "" {
			return
		}
		level, _ := object.Text("level")
		if slices.Index(levels, level) < slices.Index(levels, c.logLevel) {
			return
		}
		text, ok := object.Text("data")
		if !ok {
			text = string(object.Get("data"))
		}
		shown.line(env.Line(level + ": " + text))
	}
}
