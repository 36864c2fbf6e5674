// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// inspect lists and calls by the MCP inspector's command line, in both eras.
func inspect(ctx context.Context, o *options, t target) error {
	home := filepath.Join(o.suite.out, "inspector")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	for _, era := range []string{"modern", "legacy"} {
		config := filepath.Join(home, t.name+"-"+era+".json")
		raw, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
			t.name: map[string]any{"type": "streamable-http", "url": t.url, "protocolEra": era},
		}})
		if err != nil {
			return err
		}
		if err := os.WriteFile(config, raw, 0o600); err != nil {
			return err
		}
		ask := func(answer any, args ...string) error {
			args = append([]string{o.inspector, "--cli", "--config", config, "--server", t.name, "--format", "json"}, args...)
			cmd := exec.CommandContext(ctx, o.suite.node, args...)
			cmd.Env = append(os.Environ(), "HOME="+home, "MCP_INSPECTOR_SECRET_STORE=memory")
			output, err := cmd.Output()
			if err == nil {
				err = json.Unmarshal(output, answer)
			}
			if err != nil {
				return fmt.Errorf("the inspector at %s (%s): %w\n%s", t.name, era, err, output)
			}
			return nil
		}
		var list struct {
			Result struct{ Tools []struct{ Name string } }
		}
		if err := ask(&list, "--method", "tools/list"); err != nil {
			return err
		}
		const tool = "test_x_mcp_header"
		if !slices.ContainsFunc(list.Result.Tools, func(t struct{ Name string }) bool { return t.Name == tool }) {
			return fmt.Errorf("the inspector at %s (%s) lists no %s", t.name, era, tool)
		}
		var called struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := ask(&called, "--method", "tools/call", "--tool-name", tool, "--tool-arg", "region=eu"); err != nil {
			return err
		}
		if c := called.Result.Content; len(c) != 1 || c[0].Text != "region=eu" {
			return fmt.Errorf("the inspector at %s (%s) calls %s and gets %+v", t.name, era, tool, c)
		}
		fmt.Printf("%-24s lists %d tools and calls one\n", "inspector "+t.name+" "+era, len(list.Result.Tools))
	}
	return nil
}
