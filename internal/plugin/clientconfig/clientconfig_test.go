// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package clientconfig

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormats(t *testing.T) {
	entries := []Entry{
		{Name: "weather", URL: "https://mcp.example.com/weather?a=1&b=2", Headers: map[string]string{"X-Team": "a"}},
		{Name: "files", Command: "kubectl", Args: []string{"mcp", "connect", "files"}, Env: map[string]string{"KUBECONFIG": "/k"}},
	}
	const commands = `    "files": {
%s      "command": "kubectl",
      "args": [
        "mcp",
        "connect",
        "files"
      ],
      "env": {
        "KUBECONFIG": "/k"
      }
    },
    "weather": {
%s      "url": "https://mcp.example.com/weather?a=1&b=2",
      "headers": {
        "X-Team": "a"
      }
    }
  }
}
`
	typed := "{\n  %q: {\n" + commands
	tests := map[string]struct {
		write func([]Entry) ([]byte, error)
		want  string
	}{
		"generic":        {Generic, fmt.Sprintf(typed, "mcpServers", "      \"type\": \"stdio\",\n", "      \"type\": \"http\",\n")},
		"vs code":        {VSCode, fmt.Sprintf(typed, "servers", "      \"type\": \"stdio\",\n", "      \"type\": \"http\",\n")},
		"cursor":         {Cursor, fmt.Sprintf(typed, "mcpServers", "", "")},
		"claude desktop": {ClaudeDesktop, fmt.Sprintf(typed, "mcpServers", "", "")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.write(entries)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNone: no server is an empty object, which clients read.
func TestNone(t *testing.T) {
	got, err := Generic(nil)
	if err != nil || string(got) != "{\n  \"mcpServers\": {}\n}\n" {
		t.Errorf("%s, %v", got, err)
	}
}
