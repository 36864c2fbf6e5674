// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// childURL names the server, in the environment of a bridge of its own process.
const childURL = "ESPALIER_TEST_BRIDGE_TO"

// TestMain is the bridge when a test started it as a client does.
func TestMain(m *testing.M) {
	url := os.Getenv(childURL)
	if url == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := Run(ctx, Options{
		In: os.Stdin, Out: os.Stdout, Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Open: func(context.Context) (*Way, error) {
			return &Way{URL: url, Transport: Transport(os.Getenv(childURL + "_BY")), HTTP: &http.Client{Transport: &http.Transport{}}}, nil
		},
		UserAgent: "test", Wait: patient, MaxBytes: 1 << 20,
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// pod is one of our own servers, which stands for one after another at
// one address.
type pod struct {
	t       *testing.T
	catalog string
	address string
	server  *mcpserver.Server
	version int
}

func startPod(t *testing.T, tools ...string) *pod {
	t.Helper()
	r := &pod{t: t, catalog: t.TempDir(), address: "127.0.0.1:0"}
	r.mount(tools...)
	r.start()
	t.Cleanup(r.stop)
	return r
}

func (r *pod) start() {
	r.t.Helper()
	r.server = mcpserver.New(mcpserver.Options{
		CatalogDir: r.catalog, CredentialsDir: r.t.TempDir(), Listen: r.address, InternalListen: "127.0.0.1:0",
		ShutdownTimeout: 5 * time.Second, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	if err := r.server.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.address = r.server.Addr().String()
	eventually(r.t, "a loaded catalog", func() bool {
		ok, _ := r.server.Ready()
		return ok
	})
}

func (r *pod) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patient)
	defer cancel()
	_ = r.server.Stop(ctx)
}

// replace stops the server, mounts other tools and starts another one.
func (r *pod) replace(tools ...string) {
	r.t.Helper()
	r.stop()
	r.mount(tools...)
	r.start()
}

// mount writes a catalog as the kubelet does.
func (r *pod) mount(tools ...string) {
	r.t.Helper()
	c := &serverconfig.Config{
		Version: serverconfig.Version, Server: serverconfig.ServerInfo{Name: "weather", Title: "Weather", Version: "1.0.0", Instructions: "Ask."},
		Transports: []serverconfig.Transport{
			{Type: serverconfig.TransportStreamableHTTP, Path: "/mcp"}, {Type: serverconfig.TransportSSE, Path: "/sse"},
			{Type: serverconfig.TransportWebSocket, Path: "/ws"},
		},
		Requires: []string{serverconfig.FeatureTransports}, CacheSeconds: 5,
		Limits: serverconfig.Limits{Concurrency: 64, Streams: 64, CallTimeoutSeconds: 60, MaxMessageBytes: 1 << 20},
	}
	for _, name := range tools {
		c.Tools = append(c.Tools, serverconfig.Tool{
			Name: name, Source: "mcptool/" + name, Expression: &serverconfig.Result{Text: "'" + name + " in ' + args.place"},
			Definition: json.RawMessage(`{"name":"` + name + `","inputSchema":{"type":"object","properties":{"place":{"type":"string","x-mcp-header":"Place"}}}}`),
		})
	}
	set, err := serverconfig.Cut(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.version++
	folder := filepath.Join(r.catalog, fmt.Sprintf("..v%d", r.version))
	files := map[string][]byte{serverconfig.IndexKey: set.Index}
	for i, key := range set.Keys {
		files[key] = set.Parts[i]
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o644); err != nil {
			r.t.Fatal(err)
		}
		_ = os.Symlink(filepath.Join("..data", name), filepath.Join(r.catalog, name))
	}
	link := filepath.Join(r.catalog, "..data_tmp")
	if err := os.Symlink(filepath.Base(folder), link); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(link, filepath.Join(r.catalog, "..data")); err != nil {
		r.t.Fatal(err)
	}
}

// TestSDK: the official SDK starts the bridge as a desktop client does, in
// both eras. Its server is replaced by another with other tools meanwhile.
func TestSDK(t *testing.T) {
	for _, by := range []struct {
		transport Transport
		path      string
		versions  []string
	}{
		{StreamableHTTP, "/mcp", []string{"2026-07-28", "2025-11-25", "2025-03-26"}},
		{SSE, "/sse", []string{"2025-11-25", "2024-11-05"}},
		{WebSocket, "/ws", []string{"2026-07-28", "2025-11-25"}},
	} {
		for _, version := range by.versions {
			t.Run(string(by.transport)+" "+version, func(t *testing.T) { driveBySDK(t, by.transport, by.path, version) })
		}
	}
}

func driveBySDK(t *testing.T, by Transport, path, version string) {
	behind := startPod(t, "rain", "sun")
	ctx, cancel := context.WithTimeout(context.Background(), 2*patient)
	defer cancel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(executable)
	command.Env = append(os.Environ(), childURL+"=http://"+behind.address+path, childURL+"_BY="+string(by))
	var log bytes.Buffer
	command.Stderr = &log
	changed := make(chan struct{}, 10)
	client := sdk.NewClient(&sdk.Implementation{Name: "desk", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	session, err := client.Connect(ctx, &sdk.CommandTransport{Command: command, TerminateDuration: patient}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if got := session.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "weather" || got.Instructions != "Ask." {
		t.Errorf("initialized as %+v", got)
	}
	tools := func() (names string) {
		for tool, err := range session.Tools(ctx, nil) {
			if err != nil {
				t.Fatal(err)
			}
			names += " " + tool.Name
		}
		return names
	}
	call := func(name string) string {
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: name, Arguments: map[string]any{"place": "Zürich"}})
		if err != nil {
			t.Fatal(err)
		}
		return result.Content[0].(*sdk.TextContent).Text
	}
	if got := tools(); got != " rain sun" {
		t.Errorf("listed%s", got)
	}
	if got := call("sun"); got != "sun in Zürich" {
		t.Errorf("called: %s", got)
	}

	behind.replace("rain", "snow")
	select {
	case <-changed:
	case <-ctx.Done():
		t.Fatal("the client was not told that another server stands there")
	}
	if got := tools(); got != " rain snow" {
		t.Errorf("listed%s after the restart", got)
	}
	if got := call("snow"); got != "snow in Zürich" {
		t.Errorf("called: %s", got)
	}
	if err := session.Close(); err != nil {
		t.Errorf("the bridge ended with %v\n%s", err, log.String())
	}
	if code := command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d\n%s", code, log.String())
	}
}

// A port that nobody listens on is refused at once: the bridge's process ends
// well by SIGTERM while a request waits.
func TestTermination(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(executable)
	command.Env = append(os.Environ(), childURL+"=http://"+address+"/mcp", childURL+"_BY="+string(StreamableHTTP))
	var out bytes.Buffer
	command.Stdout = &out
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	errors, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := stdin.Write([]byte(hello + "\n")); err != nil {
		t.Fatal(err)
	}
	// It tells that the request is sent again: it waits.
	if _, err := errors.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	for err == nil {
		_, err = errors.Read(buffer)
	}
	if err := command.Wait(); err != nil || out.Len() != 0 {
		t.Errorf("ended with %v, wrote %q", err, out.String())
	}
}
