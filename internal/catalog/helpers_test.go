// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// epoch is when the oldest tool of a test was created.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// tool makes an MCPTool of server s from its name and the YAML of its spec.
func tool(t *testing.T, name, spec string) *mcpv1.MCPTool {
	t.Helper()
	out := &mcpv1.MCPTool{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", CreationTimestamp: metav1.NewTime(epoch)}}
	if err := yaml.UnmarshalStrict([]byte(spec), &out.Spec); err != nil {
		t.Fatalf("spec of %s: %v", name, err)
	}
	if out.Spec.ServerSelector == nil && out.Spec.ServerRefs == nil {
		out.Spec.ServerRefs = []mcpv1.ServerRef{{Name: "s"}}
	}
	return out
}

// aged makes a tool that was created so long after the epoch.
func aged(t *testing.T, name string, after time.Duration, spec string) *mcpv1.MCPTool {
	t.Helper()
	out := tool(t, name, spec)
	out.CreationTimestamp = metav1.NewTime(epoch.Add(after))
	return out
}

// server makes the MCPServer s from the YAML of its spec.
func server(t *testing.T, spec string) *mcpv1.MCPServer {
	t.Helper()
	out := &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: "ns"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &out.Spec); err != nil {
		t.Fatalf("spec of the server: %v", err)
	}
	return out
}

var trust = serverconfig.ProbeTrust{Audience: "ns/s", Keys: []string{"key"}}

// build compiles tools and joins them.
func build(server *mcpv1.MCPServer, tools ...*mcpv1.MCPTool) *Catalog {
	compiled := make([]*Compiled, 0, len(tools))
	for _, tool := range tools {
		compiled = append(compiled, CompileTool(tool))
	}
	return Build(server, compiled, trust)
}

// servedNames are the names on the wire, in the catalog's order.
func servedNames(c *Catalog) []string {
	names := make([]string, 0, len(c.Config.Tools))
	for _, t := range c.Config.Tools {
		names = append(names, t.Name)
	}
	return names
}

func toolID(name string) ID { return ID{KindTool, name} }
