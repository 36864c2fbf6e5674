// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clientconfig writes MCP servers down as the configuration files of
// clients have them: one function for each format. It is pure.
package clientconfig

import (
	"bytes"
	"encoding/json"
)

// Entry is one server: a URL, or a command that speaks MCP over stdin and stdout.
type Entry struct {
	// Name by which the client shows it.
	Name string
	// URL of the MCP endpoint; empty for a command.
	URL string
	// Headers that the client sends to URL.
	Headers map[string]string
	// Command, its arguments and the variables added to its environment.
	Command string
	Args    []string
	Env     map[string]string
}

// server is an entry as it is written. The formats differ in which of the
// fields they have, and in what stands around.
type server struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

func (e Entry) server(typed bool) server {
	out := server{URL: e.URL, Headers: e.Headers, Command: e.Command, Args: e.Args, Env: e.Env}
	switch {
	case !typed:
	case e.URL != "":
		out.Type = "http"
	default:
		out.Type = "stdio"
	}
	return out
}

// Generic is {"mcpServers": ...} with a type for each server, which most
// clients read.
func Generic(entries []Entry) ([]byte, error) { return file("mcpServers", entries, true) }

// ClaudeDesktop is claude_desktop_config.json. It knows commands alone: an
// entry with a URL is reached by a command that speaks to it.
func ClaudeDesktop(entries []Entry) ([]byte, error) { return file("mcpServers", entries, false) }

// Cursor is .cursor/mcp.json.
func Cursor(entries []Entry) ([]byte, error) { return file("mcpServers", entries, false) }

// VSCode is .vscode/mcp.json.
func VSCode(entries []Entry) ([]byte, error) { return file("servers", entries, true) }

// file writes entries by name below key. Clients and people read it: & and <
// in a URL stay as they are.
func file(key string, entries []Entry, typed bool) ([]byte, error) {
	servers := make(map[string]server, len(entries))
	for _, e := range entries {
		servers[e.Name] = e.server(typed)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(map[string]any{key: servers})
	return out.Bytes(), err
}
