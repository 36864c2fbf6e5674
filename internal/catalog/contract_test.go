// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"
	"testing"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// TestContractHides: a declared tool that is not what was promised is not in
// the catalog, its registration says so, and no upstream can take its name.
func TestContractHides(t *testing.T) {
	promised := tool(t, "ping", `{description: One., expression: {text: "'pong'"}}`)
	changed := tool(t, "ping", `{description: Two., expression: {text: "'pong'"}}`)
	beside := tool(t, "time", `{expression: {text: "'now'"}}`)
	digest := CompileTool(promised).Wire.Digest
	for _, test := range []struct {
		onDrift string
		tool    *mcpv1.MCPTool
		want    []string
		reason  string
	}{
		{"Report", changed, []string{"ping", "time"}, mcpv1.ReasonAccepted},
		{"Hide", changed, []string{"time"}, mcpv1.ReasonDrifted},
		{"Hide", promised, []string{"ping", "time"}, mcpv1.ReasonAccepted},
	} {
		s := server(t, fmt.Sprintf(`{contract: {onDrift: %s, tools: [{name: ping, digest: "%s"}]}, upstreams: [{name: u, url: "http://u.test/mcp"}]}`, test.onDrift, digest))
		c := build(s, test.tool, beside)
		if got := servedNames(c); !slices.Equal(got, test.want) {
			t.Errorf("%s: served %v, want %v", test.onDrift, got, test.want)
		}
		if got := c.Verdicts[toolID("ping")].Reason; got != test.reason {
			t.Errorf("%s: %s, want %s", test.onDrift, got, test.reason)
		}
		c.AddUpstreams(s, ResolveUpstreams(s, nil, nil))
		if hidden := test.reason == mcpv1.ReasonDrifted; slices.Contains(c.Config.Policy.Reserved, "ping") != hidden {
			t.Errorf("%s: reserved %v", test.onDrift, c.Config.Policy.Reserved)
		}
		if c.Config.Contract == nil || c.Config.Contract.Hide != (test.onDrift == "Hide") || slices.Contains(c.Config.Requires, "contract") != c.Config.Contract.Hide {
			t.Errorf("%s: the pods are told %+v, and that they need %v", test.onDrift, c.Config.Contract, c.Config.Requires)
		}
	}
}
