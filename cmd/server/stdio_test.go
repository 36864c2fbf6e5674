// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// asServer makes this test binary be the program that it tests.
const asServer = "ESPALIER_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	os.Exit(m.Run())
}

// mounted is a folder with the catalog of a small server.
func mounted(t *testing.T) string {
	t.Helper()
	return mountedWith(t, serverconfig.Tool{
		Name: "ping", Source: "mcptool/ping", Definition: json.RawMessage(`{"name":"ping","inputSchema":{"type":"object"}}`),
		Expression: &serverconfig.Result{Text: "'pong'"},
	})
}

// mountedWith is a folder with the catalog of a server that has these tools.
func mountedWith(t *testing.T, tools ...serverconfig.Tool) string {
	t.Helper()
	set, err := serverconfig.Cut(&serverconfig.Config{
		Version: serverconfig.Version, Server: serverconfig.ServerInfo{Name: "desk", Version: "1.0.0"},
		Transports: []serverconfig.Transport{{Type: serverconfig.TransportStreamableHTTP, Path: "/mcp"}},
		Tools:      tools,
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string][]byte{serverconfig.IndexKey: set.Index}
	for i, key := range set.Keys {
		files[key] = set.Parts[i]
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func overStdio(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "--transport", "stdio", "--catalog", mounted(t), "--credentials", t.TempDir())
	c.Env = append(os.Environ(), asServer+"=1")
	return c
}

// TestDesktopClient lets an independent client start the program and speak to
// it over stdio, in either era.
func TestDesktopClient(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			command := overStdio(t)
			client := mcp.NewClient(&mcp.Implementation{Name: "desktop", Version: "1"}, nil)
			session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			if got := session.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "desk" {
				t.Errorf("initialized as %+v", got)
			}
			tools, err := session.ListTools(ctx, nil)
			if err != nil || len(tools.Tools) != 1 {
				t.Errorf("listed %v, %v", tools, err)
			}
			result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "ping"})
			if err != nil || result.Content[0].(*mcp.TextContent).Text != "pong" {
				t.Errorf("got %v, %v", result, err)
			}
			if err := session.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
			if code := command.ProcessState.ExitCode(); code != 0 {
				t.Errorf("the server ended with %d", code)
			}
		})
	}
}

// TestStdioEnds: at the end of stdin all that was asked is answered, on a
// stdout that has nothing else, and the program ends.
func TestStdioEnds(t *testing.T) {
	command := overStdio(t)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	command.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping",` + meta + `}}` + "\n\r\n" +
		`{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{},` + meta + `}}` + "\n" +
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ping",` + meta + `}}`) // No line feed at the end.
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	answered := map[float64]bool{}
	for line := range strings.Lines(stdout.String()) {
		var m struct {
			ID     float64 `json:"id"`
			Method string  `json:"method"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Errorf("stdout has %q", line)
		}
		if m.Method == "" {
			answered[m.ID] = true
		}
	}
	if len(answered) != 2 || !answered[1] || !answered[3] {
		t.Errorf("answered %v", answered)
	}
	if !strings.Contains(stderr.String(), "Catalog loaded") {
		t.Errorf("the log is not on stderr: %s", stderr.String())
	}
}

// TestStdioFlags: no port is opened that nobody asked for.
func TestStdioFlags(t *testing.T) {
	var stdout, stderr bytes.Buffer
	args := []string{"--transport", "stdio", "--catalog", mounted(t), "--credentials", t.TempDir()}
	if code := run(args, strings.NewReader(""), &stdout, &stderr); code != 0 || stdout.Len() > 0 {
		t.Errorf("ended with %d: %s", code, stdout.String())
	}
	if log := stderr.String(); !strings.Contains(log, `"listen":"","internalListen":""`) {
		t.Errorf("the log is %s", log)
	}
	stderr.Reset()
	if code := run(append(args, "--internal-listen", "127.0.0.1:0"), strings.NewReader(""), &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), `"internalListen":"127.0.0.1:`) {
		t.Errorf("ended with %d: %s", code, stderr.String())
	}
	stderr.Reset()
	if code := run([]string{"--transport", "pigeon"}, nil, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), `--transport is http or stdio, not "pigeon"`) {
		t.Errorf("ended with %d: %s", code, stderr.String())
	}
}
