// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

func raw(texts ...string) []json.RawMessage {
	var out []json.RawMessage
	for _, text := range texts {
		out = append(out, json.RawMessage(text))
	}
	return out
}

// serve starts a server with entries in all lists.
func serve(t *testing.T, modern bool, change func(*fakemcp.Server)) string {
	t.Helper()
	s := fakemcp.New()
	s.Settings.Modern, s.Settings.Legacy = modern, !modern
	s.Settings.Capabilities = map[string]any{"tools": map[string]any{}, "resources": map[string]any{}, "prompts": map[string]any{}}
	s.Settings.Tools = raw(
		`{"name":"add","title":"Sum","description":"Adds\n two numbers","inputSchema":{"type":"object","required":["b","a"],"properties":{"a":{"type":"number"},"b":{"type":"number"},"note":{"type":"string"}}},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object"}}`,
		`{"name":"odd\u001b[2J","inputSchema":true}`)
	s.Settings.Resources = raw(`{"uri":"file:///a","name":"a","mimeType":"text/plain"}`)
	s.Settings.Prompts = raw(`{"name":"greet","arguments":[{"name":"who","required":true},{"name":"how"}]}`)
	s.On(mcp.MethodResourceTemplates, func(c *fakemcp.Call) {
		c.Result(map[string]any{"resourceTemplates": raw(`{"uriTemplate":"file:///{x}","name":"t"}`)})
	})
	if change != nil {
		change(s)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL + "/mcp?key=hunter2"
}

func run(t *testing.T, newCommand func(*env.Env) *cobra.Command, args ...string) (out, errOut string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	streams, _, o, e := genericiooptions.NewTestIOStreams()
	command := newCommand(env.New(streams))
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(ctx)
	return o.String(), e.String(), err
}

// TestTables: in both eras, in one line each, whatever the server's words are.
func TestTables(t *testing.T) {
	tests := map[string]struct {
		command func(*env.Env) *cobra.Command
		args    []string
		want    string
	}{
		"tools": {NewTools, nil, `NAME         ARGUMENTS    DESCRIPTION
add          a b [note]   Adds two numbers
odd\x1b[2J   -
`},
		"wide": {NewTools, []string{"-o", "wide"}, `NAME         ARGUMENTS                         RESULT       HINTS       TITLE   DESCRIPTION
add          a=number b=number [note=string]   structured   read-only   Sum     Adds two numbers
odd\x1b[2J   -                                 content      -
`},
		"name": {NewTools, []string{"-o", "name"}, "add\nodd\\x1b[2J\n"},
		"resources": {NewResources, []string{"-o", "wide"}, `URI           KIND       NAME   TYPE         TITLE   DESCRIPTION
file:///a     resource   a      text/plain
file:///{x}   template   t      -
`},
		"prompts": {NewPrompts, nil, `NAME    ARGUMENTS   DESCRIPTION
greet   who [how]
`},
		"json": {NewPrompts, []string{"-o", "json"}, `{
    "prompts": [
        {
            "name": "greet",
            "arguments": [
                {
                    "name": "who",
                    "required": true
                },
                {
                    "name": "how"
                }
            ]
        }
    ]
}
`},
		"yaml": {NewResources, []string{"-o", "yaml"}, "resources:\n- mimeType: text/plain\n  name: a\n  uri: file:///a\n- name: t\n  uriTemplate: file:///{x}\n"},
	}
	for _, modern := range []bool{false, true} {
		url := serve(t, modern, nil)
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				out, errOut, err := run(t, test.command, append(test.args, url)...)
				if diff := cmp.Diff(test.want, out); diff != "" || err != nil {
					t.Errorf("modern %v: %v %s (-want +got):\n%s", modern, err, errOut, diff)
				}
			})
		}
	}
}

// TestNothing is said on standard error, and a list that failed is no empty one.
func TestNothing(t *testing.T) {
	url := serve(t, false, func(s *fakemcp.Server) {
		s.Settings.Prompts = nil
		s.On(mcp.MethodResourcesList, func(c *fakemcp.Call) { c.Error(http.StatusOK, mcp.CodeInternalError, "no", nil) })
	})
	out, errOut, err := run(t, NewPrompts, url)
	if out != "" || !strings.HasPrefix(errOut, "No prompts found in http://127.0.0.1") || strings.Contains(errOut, "hunter2") || err != nil {
		t.Errorf("got %q, %q, %v", out, errOut, err)
	}
	if _, _, err := run(t, NewResources, url); err == nil || !strings.Contains(err.Error(), "answered resources/list with an error") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if _, _, err := run(t, NewTools, url, "-o", "xml"); err == nil || !strings.Contains(err.Error(), "-o xml") {
		t.Errorf("got %v", err)
	}
	if _, _, err := run(t, NewTools, url, "--all-pods"); err == nil || !strings.Contains(err.Error(), "not a URL") {
		t.Errorf("got %v", err)
	}
}

// TestDifferences: what replicas list otherwise is named, field by field.
func TestDifferences(t *testing.T) {
	tool := func(name, description string) string {
		return `{"name":"` + name + `","description":"` + description + `","inputSchema":{"type":"object"}}`
	}
	lists := [][]json.RawMessage{
		raw(tool("same", "x"), tool("other", "x"), tool("gone", "x")),
		raw(`{"inputSchema":{"type":"object"},"description":"x","name":"same"}`, tool("other", "y"), tool("new", "x")),
	}
	endpoints := make([]*reach.Endpoint, 0, 3)
	for i, list := range lists {
		url := serve(t, i == 0, func(s *fakemcp.Server) { s.Settings.Tools = list })
		p := reach.Direct(url, mcpprobe.TransportAuto)
		p.Pod = []string{"a", "b"}[i]
		endpoints = append(endpoints, p)
	}
	broken := reach.Direct("http://127.0.0.1:1/mcp", mcpprobe.TransportAuto)
	broken.Pod = "c"
	endpoints = append(endpoints, broken)
	var out bytes.Buffer
	c := &command{Env: env.New(genericiooptions.IOStreams{In: new(bytes.Buffer), Out: &out, ErrOut: &out}), kind: &tools}
	c.AllPods = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answers := c.ask(ctx, endpoints)
	if err := c.print("s", merge(answers)); err != nil {
		t.Fatal(err)
	}
	want := `NAME    REPLICAS   ARGUMENTS   DESCRIPTION
same    2/2        -           x
other   1/2        -           x
gone    1/2        -           x
new     1/2        -           x

The replicas differ:
  other of b is not that of a: description
  gone is not listed by b
  new is not listed by a
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := failures(answers); err == nil || !strings.Contains(err.Error(), "c: nothing listens") || errors.Is(err, env.No) {
		t.Errorf("got %v", err)
	}
	out.Reset()
	c.output = "json"
	if err := c.print("s", merge(answers[:1])); err != nil || !strings.Contains(out.String(), `"pod": "a"`) {
		t.Errorf("%v\n%s", err, out.String())
	}
}
