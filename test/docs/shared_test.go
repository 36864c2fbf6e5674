// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// shared is a shared server that runs.
type shared struct {
	t   *testing.T
	url string
}

type answer struct {
	status int
	body   string
}

// serve starts a server that serves objects; none is one without a catalog.
func serve(t *testing.T, objects string) *shared {
	t.Helper()
	root := t.TempDir()
	dirs := map[string]string{}
	for _, name := range []string{"catalog", "credentials", "keys"} {
		dirs[name] = filepath.Join(root, name)
		write(t, filepath.Join(dirs[name], ".keep"), nil)
	}
	write(t, filepath.Join(dirs["keys"], "callers", "alice"), []byte("a-key-of-alice-that-is-long-enough"))
	if objects != "" {
		set, err := serverconfig.Cut(compiled(t, objects))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dirs["catalog"], serverconfig.IndexKey), set.Index)
		for i, key := range set.Keys {
			write(t, filepath.Join(dirs["catalog"], key), set.Parts[i])
		}
	}
	server := mcpserver.New(mcpserver.Options{
		CatalogDir: dirs["catalog"], CredentialsDir: dirs["credentials"], APIKeysDir: dirs["keys"],
		Listen: "127.0.0.1:0", InternalListen: "127.0.0.1:0", Version: "docs", Log: slog.New(slog.DiscardHandler),
	})
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = server.Stop(ctx)
	})
	for deadline := time.Now().Add(15 * time.Second); objects != ""; time.Sleep(2 * time.Millisecond) {
		if ready, why := server.Ready(); ready {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(why)
		}
	}
	return &shared{t: t, url: "http://" + server.Addr().String() + "/mcp"}
}

// compiled is the catalog of an MCPServer and what it serves.
func compiled(t *testing.T, objects string) *serverconfig.Config {
	t.Helper()
	var server v1alpha1.MCPServer
	var served []*catalog.Compiled
	for _, text := range strings.Split(objects, "\n---\n") {
		var kind struct {
			Kind string `json:"kind"`
		}
		read(t, text, &kind)
		switch kind.Kind {
		case "MCPServer":
			read(t, text, &server)
		case "MCPTool":
			var tool v1alpha1.MCPTool
			read(t, text, &tool)
			served = append(served, catalog.Compile(&tool))
		case "MCPResource":
			var resource v1alpha1.MCPResource
			read(t, text, &resource)
			served = append(served, catalog.Compile(&resource))
		default:
			t.Fatalf("kind %q", kind.Kind)
		}
	}
	built := catalog.Build(&server, served, serverconfig.ProbeTrust{})
	built.Surround(catalog.Surroundings{URL: "http://weather-mcp.team-a.svc:8080/mcp"})
	if !built.Server.Accepted || len(built.Served) != len(served) {
		t.Fatalf("%v, %v", built.Server, built.Verdicts)
	}
	return built.Config
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// modern makes a request of revision 2026-07-28. params are members without
// braces, headers are names and values.
func (s *shared) modern(method, name, params string, headers ...string) answer {
	s.t.Helper()
	if params != "" {
		params += ","
	}
	headers = append(headers, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method)
	if name != "" {
		headers = append(headers, "Mcp-Name", name)
	}
	return s.post(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, headers...)
}

func (s *shared) post(body string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(http.MethodPost, s.url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, string(text)}
}
