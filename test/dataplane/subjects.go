// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// subject is one thing that is measured.
type subject struct {
	name string
	// group is measured in turns; floor names the subject that its figures are
	// compared with.
	group, floor string
	era          era
	path         string
	// start starts it on a port.
	start func(port int) (*process, error)
}

// stage holds what all subjects need.
type stage struct {
	options
	dir  string
	back *process
	// backend is its URL.
	backend string
}

func (s *stage) close() {
	if s.back != nil {
		s.back.stop()
	}
}

// Groups of subjects.
const (
	groupProtocol = "protocol"
	groupHTTP     = "http"
	groupStdio    = "stdio"
)

const mcpPath = "/mcp"

func (s *stage) subjects() ([]subject, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	if s.back, err = role("backend")(port); err != nil {
		return nil, err
	}
	s.backend = fmt.Sprintf("http://127.0.0.1:%d", port)
	expression, tool := s.shared("expression", withTool(expressionTool())), s.shared("http", withTool(httpTool(s.backend)))
	wrapped, err := wrapping()
	if err != nil {
		return nil, err
	}
	stdio := s.shared("stdio", wrapped)
	all := []subject{
		{"floor", groupProtocol, "", plain, "/", role("floor")},
		{"sdk-modern", groupProtocol, "floor", modern, "/", role("sdk")},
		{"sdk-legacy", groupProtocol, "floor", legacy, "/", role("sdk")},
		{"expression-modern", groupProtocol, "floor", modern, mcpPath, expression},
		{"expression-legacy", groupProtocol, "floor", legacy, mcpPath, expression},
		{"reverse-proxy", groupHTTP, "", plain, "/", role("proxy", s.backend)},
		{"http", groupHTTP, "reverse-proxy", modern, mcpPath, tool},
		{"stdio-modern", groupStdio, "", modern, mcpPath, stdio},
		{"stdio-legacy", groupStdio, "", legacy, mcpPath, stdio},
	}
	if s.node == "" {
		fmt.Fprintln(os.Stderr, "dataplane: without Node.js the bridges are not measured")
		return all, nil
	}
	proxy, gateway, err := s.bridges()
	if err != nil {
		return nil, err
	}
	return append(all,
		subject{"mcp-proxy-modern", groupStdio, "stdio-modern", modern, mcpPath, proxy},
		subject{"mcp-proxy-legacy", groupStdio, "stdio-legacy", legacy, mcpPath, proxy},
		subject{"supergateway", groupStdio, "stdio-legacy", legacy, mcpPath, gateway},
	), nil
}

// role starts this program as one of its subjects.
func role(name string, args ...string) func(int) (*process, error) {
	return func(port int) (*process, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return start(port, nil, self, append([]string{roleArgument, name, fmt.Sprintf("127.0.0.1:%d", port)}, args...)...)
	}
}

// bridges are those of npm, with the same child.
func (s *stage) bridges() (proxy, gateway func(int) (*process, error), err error) {
	command, err := childCommand()
	if err != nil {
		return nil, nil, err
	}
	run := func(script string, args ...string) (*process, error) {
		var port int
		for i := range args {
			if args[i] == "--port" {
				_, _ = fmt.Sscan(args[i+1], &port)
			}
		}
		return start(port, nil, s.node, append([]string{filepath.Join(s.modules, script)}, args...)...)
	}
	proxy = func(port int) (*process, error) {
		args := []string{"--host", "127.0.0.1", "--port", fmt.Sprint(port), "--server", "stream", "--"}
		return run("mcp-proxy/dist/bin/mcp-proxy.mjs", append(args, command...)...)
	}
	gateway = func(port int) (*process, error) {
		return run("supergateway/dist/index.js", "--stdio", strings.Join(command, " "), "--outputTransport", "streamableHttp", "--stateful",
			"--logLevel", "none", "--port", fmt.Sprint(port))
	}
	return proxy, gateway, nil
}

// shared starts the shared server with a catalog.
func (s *stage) shared(name string, config *serverconfig.Config) func(int) (*process, error) {
	return func(port int) (*process, error) {
		folder := filepath.Join(s.dir, name)
		if err := mount(folder, config); err != nil {
			return nil, err
		}
		return s.serve(folder, port)
	}
}

// serve starts the shared server with the catalog of a folder. It is ready
// when its first list is.
func (s *stage) serve(folder string, port int) (*process, error) {
	internal, err := freePort()
	if err != nil {
		return nil, err
	}
	p, err := start(port, nil, s.server, "--catalog="+folder, "--credentials="+s.dir, fmt.Sprintf("--listen=127.0.0.1:%d", port),
		fmt.Sprintf("--internal-listen=127.0.0.1:%d", internal))
	if err != nil {
		return nil, err
	}
	if err := awaitReady(internal); err != nil {
		p.stop()
		return nil, fmt.Errorf("%w: %s", err, p.output.String())
	}
	return p, nil
}

func baseConfig() *serverconfig.Config {
	return &serverconfig.Config{
		Version: serverconfig.Version, Server: serverconfig.ServerInfo{Name: "bench", Version: "1.0.0"},
		Transports: []serverconfig.Transport{{Type: serverconfig.TransportStreamableHTTP, Path: mcpPath}}, CacheSeconds: 5,
		Limits: serverconfig.Limits{Concurrency: 64, Streams: 1024, CallTimeoutSeconds: 60, MaxMessageBytes: 10 << 20},
	}
}

func withTool(tool serverconfig.Tool) *serverconfig.Config {
	c := baseConfig()
	c.Tools = []serverconfig.Tool{tool}
	return c
}

func expressionTool() serverconfig.Tool {
	return serverconfig.Tool{
		Name: "echo", Source: "mcptool/echo", Definition: json.RawMessage(echoDefinition), Expression: &serverconfig.Result{Text: "args.text"},
	}
}

func httpTool(backend string) serverconfig.Tool {
	return serverconfig.Tool{
		Name: "echo", Source: "mcptool/echo", Definition: json.RawMessage(echoDefinition),
		HTTP: &serverconfig.HTTP{Connection: serverconfig.Connection{URL: backend + "/echo"}, Method: "GET", TimeoutSeconds: 30},
	}
}

// wrapping is the catalog of a server of type Stdio.
func wrapping() (*serverconfig.Config, error) {
	command, err := childCommand()
	if err != nil {
		return nil, err
	}
	c := baseConfig()
	c.Requires = []string{serverconfig.FeatureUpstreams, serverconfig.FeatureStdio}
	c.Policy = &serverconfig.ToolsPolicy{Max: 100}
	c.Upstreams = []serverconfig.Upstream{{Name: serverconfig.StdioUpstream, Stdio: &serverconfig.Stdio{
		Command: command, StartupTimeoutSeconds: 10, HandshakeTimeoutSeconds: 10, MaxMessageBytes: 10 << 20, MaxStderrBytes: 64 << 10,
	}}}
	return c, nil
}

// mount puts a catalog into a folder as the kubelet does: a new folder, then
// one swap of a link.
func mount(folder string, c *serverconfig.Config) error {
	set, err := serverconfig.Cut(c)
	if err != nil {
		return err
	}
	version := "..v" + strings.TrimPrefix(set.Digest, "sha256:")
	if err := os.MkdirAll(filepath.Join(folder, version), 0o755); err != nil {
		return err
	}
	for i, key := range append([]string{serverconfig.IndexKey}, set.Keys...) {
		data := set.Index
		if i > 0 {
			data = set.Parts[i-1]
		}
		if err := os.WriteFile(filepath.Join(folder, version, key), data, 0o600); err != nil {
			return err
		}
		link := filepath.Join(folder, key)
		if err := os.Symlink(filepath.Join("..data", key), link); err != nil && !os.IsExist(err) {
			return err
		}
	}
	fresh := filepath.Join(folder, "..data_tmp")
	if err := os.Symlink(version, fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(folder, "..data"))
}
