// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package examples tests the examples without a cluster. That they work on
// one is shown by test/e2e.
package examples

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestExamples reads each example strictly and expects each tool, resource and
// prompt to be accepted and served by a server of its own folder.
func TestExamples(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		dir := entry.Name()
		t.Run(dir, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(dir, "README.md")); err != nil {
				t.Errorf("an example says what it is for: %v", err)
			}
			servers, registrations := load(t, dir)
			if len(servers) == 0 {
				t.Error("no MCPServer")
			}
			served := 0
			for _, server := range servers {
				// They are applied to one namespace.
				if other := where[server.Name]; other != "" {
					t.Errorf("MCPServer %s stands in %s, too", server.Name, other)
				}
				where[server.Name] = dir
				served += check(t, server, registrations)
			}
			if served != len(registrations) {
				t.Errorf("%d of %d tools, resources and prompts are served", served, len(registrations))
			}
		})
	}
}

// check expects server to serve what names it, and counts that.
func check(t *testing.T, server *mcpv1.MCPServer, registrations []mcpv1.Registration) int {
	t.Helper()
	var compiled []*catalog.Compiled
	for _, r := range registrations {
		if catalog.Selects(r, server) {
			compiled = append(compiled, catalog.Compile(r))
		}
	}
	built := catalog.Build(server, compiled, serverconfig.ProbeTrust{})
	if !built.Server.Accepted {
		t.Errorf("%s: %s: %s", server.Name, built.Server.Reason, built.Server.Message)
	}
	for id, verdict := range built.Verdicts {
		if !verdict.Accepted {
			t.Errorf("%s: %s: %s", id, verdict.Reason, verdict.Message)
		}
	}
	return len(built.Served)
}

func load(t *testing.T, dir string) (servers []*mcpv1.MCPServer, registrations []mcpv1.Registration) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, document := range documents(t, file) {
			switch {
			case bytes.Contains(document, []byte("kind: MCPServer\n")):
				server := &mcpv1.MCPServer{}
				decode(t, file, document, server)
				if server.Spec.Type == "" {
					server.Spec.Type = mcpv1.TypeTools
				}
				servers = append(servers, server)
			default:
				for kind, r := range map[string]mcpv1.Registration{
					"MCPTool": &mcpv1.MCPTool{}, "MCPResource": &mcpv1.MCPResource{}, "MCPPrompt": &mcpv1.MCPPrompt{},
				} {
					if bytes.Contains(document, []byte("kind: "+kind+"\n")) {
						decode(t, file, document, r)
						registrations = append(registrations, r)
					}
				}
			}
		}
	}
	return servers, registrations
}

func documents(t *testing.T, file string) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for _, part := range strings.Split(string(raw), "\n---\n") {
		out = append(out, []byte(part+"\n"))
	}
	return out
}

func decode(t *testing.T, file string, document []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		t.Errorf("%s: %v", file, err)
	}
}
