// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Command plugin lets the conformance suite judge kubectl mcp as a client: it
// runs the program that KUBECTL_MCP names, as a person would, at the URL that
// is its last argument, and does what the scenario of that name asks for.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: plugin URL")
		os.Exit(2)
	}
	c := &client{url: os.Args[len(os.Args)-1]}
	do, ok := scenarios[os.Getenv("MCP_CONFORMANCE_SCENARIO")]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such scenario is known here")
		os.Exit(2)
	}
	if err := do(c); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// scenarios say what a person would type in each.
var scenarios = map[string]func(*client) error{
	"initialize":               func(c *client) error { return c.run("tools", c.url) },
	"tools_call":               func(c *client) error { return c.call("add_numbers", "a=5", "b=3") },
	"request-metadata":         everyList,
	"http-standard-headers":    everyList,
	"json-schema-ref-no-deref": func(c *client) error { return c.run("tools", c.url, "-o", "wide") },
	"sse-retry":                func(c *client) error { return c.call("test_reconnection") },
	"elicitation-sep1034-client-defaults": func(c *client) error {
		return c.call("test_client_elicitation_defaults", "--answer-defaults")
	},
	"sep-2322-client-request-state": func(c *client) error {
		return errors.Join(
			c.call("test_mrtr_echo_state", "--answer", "confirmed=true"),
			c.call("test_mrtr_unrelated", "--answer", "confirmed=true"),
			c.call("test_mrtr_no_state", "--answer", "confirmed=true"),
			c.call("test_mrtr_no_result_type", "--answer", "confirmed=true"),
		)
	},
	"http-custom-headers":              asTold,
	"http-invalid-tool-headers":        everyTool,
	"json-schema-2020-12-preservation": echoSchema,
}

// client is kubectl mcp at one URL.
type client struct{ url string }

func (c *client) output(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), os.Getenv("KUBECTL_MCP"), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	fmt.Fprintf(os.Stderr, "$ kubectl mcp %s\n%s", strings.Join(args, " "), out)
	return out, err
}

func (c *client) run(args ...string) error {
	_, err := c.output(args...)
	return err
}

func (c *client) call(tool string, more ...string) error {
	return c.run(append([]string{"call", c.url, tool}, more...)...)
}

// everyList lists what there is, calls what can be called without arguments,
// and probes.
func everyList(c *client) error {
	err := errors.Join(c.run("tools", c.url), c.run("resources", c.url), c.run("prompts", c.url), c.run("probe", c.url))
	for _, tool := range c.tools() {
		err = errors.Join(err, c.call(tool.Name, "--unchecked"))
	}
	return err
}

// asTold makes the calls that the suite names.
func asTold(c *client) error {
	var told struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &told); err != nil {
		return err
	}
	var failed error
	for _, one := range told.ToolCalls {
		// A null stands there for what is a boolean by the schema.
		failed = errors.Join(failed, c.call(one.Name, "--unchecked", "--args", string(one.Arguments)))
	}
	return failed
}

// everyTool tries to call all tools, with all arguments that they take. Those
// that are unsound are refused.
func everyTool(c *client) error {
	var failed error
	for _, tool := range c.tools() {
		args := []string{}
		for name := range tool.InputSchema.Properties {
			args = append(args, name+`:="x"`)
		}
		failed = errors.Join(failed, c.call(tool.Name, append(args, "--unchecked")...))
	}
	return failed
}

// echoSchema sends a schema back as it was listed.
func echoSchema(c *client) error {
	for _, tool := range c.tools() {
		if tool.Name != "json_schema_echo" {
			return c.call("json_schema_echo", "schema:="+string(tool.raw))
		}
	}
	return errors.New("no tool with a schema is listed")
}

type tool struct {
	Name        string `json:"name"`
	InputSchema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	raw json.RawMessage
}

// tools that are listed.
func (c *client) tools() []tool {
	out, err := c.output("tools", c.url, "-o", "json")
	if err != nil {
		return nil
	}
	var list struct {
		Tools []struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return nil
	}
	var tools []tool
	for _, one := range list.Tools {
		t := tool{Name: one.Name, raw: one.InputSchema}
		if err := json.Unmarshal(one.InputSchema, &t.InputSchema); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		tools = append(tools, t)
	}
	return tools
}
