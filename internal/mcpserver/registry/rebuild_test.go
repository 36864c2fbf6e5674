// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestWhatChangedIsMadeAgain, and nothing else: not the schemas of a tool that
// is described anew, and not its handler.
func TestWhatChangedIsMadeAgain(t *testing.T) {
	base := serverconfig.Tool{
		Name: "t", Source: "mcptool/t", Metadata: map[string]string{"tier": "1"}, Expression: &serverconfig.Result{Text: "'x'"},
		Definition: json.RawMessage(`{"name":"t","description":"old","inputSchema":{"type":"object","required":["a"]},"outputSchema":{"type":"object"}}`),
	}
	reworded := func(from, to string) func(*serverconfig.Tool) {
		return func(c *serverconfig.Tool) {
			c.Definition = json.RawMessage(strings.Replace(string(c.Definition), from, to, 1))
		}
	}
	for name, test := range map[string]struct {
		change          func(*serverconfig.Tool)
		schema, handler bool
	}{
		"nothing":     {func(*serverconfig.Tool) {}, false, false},
		"description": {reworded("old", "new"), false, false},
		"metadata":    {func(c *serverconfig.Tool) { c.Metadata = map[string]string{"tier": "2"} }, false, false},
		"expression":  {func(c *serverconfig.Tool) { c.Expression = &serverconfig.Result{Text: "'y'"} }, false, true},
		"input":       {reworded(`["a"]`, `["b"]`), true, true},
		"output":      {reworded(`,"outputSchema":{"type":"object"}`, ""), true, true},
		"source":      {func(c *serverconfig.Tool) { c.Source = "upstream/u" }, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			factories := Factories{Tool: func(*serverconfig.Tool, *schema.Schema) (call.Handler, error) {
				made++
				return call.Func(nil), nil
			}}
			first := Build(&serverconfig.Config{Tools: []serverconfig.Tool{base}}, "1", factories, nil)
			next := base
			test.change(&next)
			second := Build(&serverconfig.Config{Tools: []serverconfig.Tool{next}}, "2", factories, first)
			before, after := first.Tools()[0], second.Tools()[0]
			if got := before.Input != after.Input; got != test.schema {
				t.Errorf("schema made again: %t", got)
			}
			if got := made == 2; got != test.handler {
				t.Errorf("handler made again: %t", got)
			}
			if (after.Output != nil) != strings.Contains(string(next.Definition), "outputSchema") {
				t.Errorf("output schema %v of %s", after.Output, next.Definition)
			}
			if string(after.Modern) != string(next.Definition) || after.Metadata["tier"] != next.Metadata["tier"] {
				t.Errorf("serves %s with %v", after.Modern, after.Metadata)
			}
			if err := after.Input.Validate(map[string]any{"b": "x"}); (err == nil) != (name == "input") {
				t.Errorf("arguments are judged by another schema: %v", err)
			}
		})
	}
}
