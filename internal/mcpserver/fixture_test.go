// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/mcpserver/memory"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestMain fails when goroutines of this program outlive its tests.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		if left := leaked(); left != "" {
			_, _ = fmt.Fprintf(os.Stderr, "goroutines leaked:\n%s\n", left)
			code = 1
		}
	}
	os.Exit(code)
}

// leaked gives the stacks of goroutines that run our code, once they had time
// to end.
func leaked() string {
	var left []string
	for range 3000 {
		buf := make([]byte, 4<<20)
		buf = buf[:runtime.Stack(buf, true)]
		left = nil
		for _, stack := range strings.Split(string(buf), "\n\n") {
			if strings.Contains(stack, "espalier/internal/mcpserver") && !strings.Contains(stack, "testing.(*M).Run") && !strings.Contains(stack, "TestMain") {
				left = append(left, stack)
			}
		}
		if left == nil {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return strings.Join(left, "\n\n")
}

// fixture is a running server and its mounted catalog.
type fixture struct {
	t       testing.TB
	server  *mcpserver.Server
	catalog string
	creds   string
	client  *http.Client
	version atomic.Int64
	log     *syncBuffer

	// Of servers with all transports: memory, and the ends of the pipes that
	// stand for a client over stdio.
	memory    *memory.Transport
	stdin     io.WriteCloser
	stdout    io.Reader
	stdoutEnd io.Closer
}

type syncBuffer struct {
	lines chan []byte
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	select {
	case b.lines <- bytes.Clone(p):
	default:
	}
	return len(p), nil
}

func tool(name string, change func(*serverconfig.Tool)) serverconfig.Tool {
	t := serverconfig.Tool{
		Name: name, Source: "mcptool/" + name, Expression: &serverconfig.Result{Text: "'" + name + "'"},
		Definition: json.RawMessage(`{"name":"` + name + `","description":"Says ` + name + `.","inputSchema":{"type":"object"}}`),
	}
	if change != nil {
		change(&t)
	}
	return t
}

func config(tools ...serverconfig.Tool) *serverconfig.Config {
	return &serverconfig.Config{
		Version: serverconfig.Version, Server: serverconfig.ServerInfo{Name: "test", Title: "Test", Version: "1.0.0", Instructions: "Ask."},
		Transports:     []serverconfig.Transport{{Type: serverconfig.TransportStreamableHTTP, Path: "/mcp"}},
		AllowedOrigins: []string{"https://app.example.com"}, CacheSeconds: 5,
		Limits: serverconfig.Limits{Concurrency: 64, Streams: 1024, CallTimeoutSeconds: 60, MaxMessageBytes: 1 << 20},
		Tools:  tools,
	}
}

// start runs a server that has loaded c (nil: no catalog at all).
func start(t testing.TB, c *serverconfig.Config, change ...func(*mcpserver.Options)) *fixture {
	t.Helper()
	root := t.TempDir()
	f := &fixture{
		t: t, catalog: filepath.Join(root, "catalog"), creds: filepath.Join(root, "credentials"),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}, log: &syncBuffer{lines: make(chan []byte, 10000)},
	}
	for _, folder := range []string{f.catalog, f.creds} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if c != nil {
		f.write(c)
	}
	options := mcpserver.Options{
		CatalogDir: f.catalog, CredentialsDir: f.creds, Listen: "127.0.0.1:0", InternalListen: "127.0.0.1:0",
		ShutdownTimeout: 5 * time.Second, Version: "test",
		Log: slog.New(slog.NewJSONHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&options)
	}
	f.server = mcpserver.New(options)
	if err := f.server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = f.server.Stop(ctx)
	})
	if c != nil {
		f.until("a loaded catalog", func() bool { ok, _ := f.server.Ready(); return ok })
	}
	return f
}

// write mounts a catalog as the kubelet does: a new folder, then one swap of
// the link ..data. It returns the digest.
func (f *fixture) write(c *serverconfig.Config) string {
	f.t.Helper()
	set, err := serverconfig.Cut(c)
	if err != nil {
		f.t.Fatal(err)
	}
	files := map[string][]byte{serverconfig.IndexKey: set.Index}
	for i, key := range set.Keys {
		files[key] = set.Parts[i]
	}
	f.mount(files)
	return set.Digest
}

func (f *fixture) mount(files map[string][]byte) {
	f.t.Helper()
	version := fmt.Sprintf("..v%d", f.version.Add(1))
	folder := filepath.Join(f.catalog, version)
	must(f.t, os.MkdirAll(folder, 0o755))
	for name, data := range files {
		must(f.t, os.WriteFile(filepath.Join(folder, name), data, 0o644))
	}
	link := filepath.Join(f.catalog, "..data_tmp")
	must(f.t, os.Symlink(version, link))
	must(f.t, os.Rename(link, filepath.Join(f.catalog, "..data")))
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(f.catalog, name)); err != nil && !os.IsExist(err) {
			f.t.Fatal(err)
		}
	}
}

// reload mounts a catalog and waits until it is served.
func (f *fixture) reload(c *serverconfig.Config) {
	f.t.Helper()
	digest := f.write(c)
	f.until("the new catalog", func() bool { return f.server.Report().CatalogDigest == digest })
}

func (f *fixture) until(what string, check func() bool) {
	f.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !check() {
		if time.Now().After(deadline) {
			f.t.Fatalf("%s did not come in time", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) url() string      { return "http://" + f.server.Addr().String() + "/mcp" }
func (f *fixture) internal() string { return "http://" + f.server.InternalAddr().String() }

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// modern makes a request of the modern era with all that belongs to it.
// params are members without braces.
func (f *fixture) modern(method, params string) *http.Request {
	if params != "" {
		params += ","
	}
	r := f.post(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + modernMeta + `}}`)
	r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	return r
}

// callModern makes a tools/call of the modern era.
func (f *fixture) callModern(name, args string) *http.Request {
	r := f.modern("tools/call", `"name":"`+name+`","arguments":`+args)
	r.Header.Set("Mcp-Name", name)
	return r
}

func (f *fixture) post(body string) *http.Request {
	f.t.Helper()
	r, err := http.NewRequest(http.MethodPost, f.url(), strings.NewReader(body))
	must(f.t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	return r
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

func (f *fixture) do(r *http.Request) answer {
	f.t.Helper()
	response, err := f.client.Do(r)
	must(f.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(f.t, err)
	return answer{response.StatusCode, response.Header, string(body)}
}

// errorCode of a JSON-RPC answer, 0 for none.
func (a answer) errorCode() int {
	var m struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.body), &m)
	return m.Error.Code
}

// result of a JSON-RPC answer.
func (a answer) result() map[string]any {
	var m struct {
		Result map[string]any `json:"result"`
	}
	_ = json.Unmarshal([]byte(a.body), &m)
	return m.Result
}

// reason of a failed call.
func (a answer) reason() string {
	meta, _ := a.result()["_meta"].(map[string]any)
	reason, _ := meta["mcp.espalier.dev/reason"].(string)
	return reason
}

// text of the first content block.
func (a answer) text() string {
	blocks, _ := a.result()["content"].([]any)
	if len(blocks) == 0 {
		return ""
	}
	block, _ := blocks[0].(map[string]any)
	text, _ := block["text"].(string)
	return text
}
