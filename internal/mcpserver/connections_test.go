// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/transport"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// connections are the transports whose connections carry all.
var connections = map[string]connector{"memory": connectMemory, "stdio": connectStdio, "WebSocket": connectWebSocket}

// TestOddMessages: what is wrong with one message does no harm to another.
func TestOddMessages(t *testing.T) {
	for name, connect := range connections {
		t.Run(name, func(t *testing.T) {
			backend := newBlockingBackend(t)
			c := every(tool("ping", nil), slowTool(backend.URL))
			c.Limits.MaxMessageBytes = 2000
			p := connect(t, startAll(t, c), true)
			wantError := func(raw string, code int) {
				t.Helper()
				p.send(raw, nil)
				if m := next(t, p.unasked); errorOf(m) != code || m["id"] != nil {
					t.Errorf("%.40s: got %v, want %d", raw, m, code)
				}
			}
			wantError(`{`, mcp.CodeParseError)
			wantError(`null`, mcp.CodeParseError)
			wantError(`{"jsonrpc":"1.0"}`, mcp.CodeInvalidRequest)
			wantError(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, mcp.CodeInvalidRequest)
			wantError(`{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 3000)+`"}`, mcp.CodeTooLarge)
			p.send(`{"jsonrpc":"2.0","id":99,"result":{}}`, nil) // Nobody asked.
			p.send(`{"jsonrpc":"2.0","method":"notifications/nothing"}`, nil)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4711}}`, nil)

			first := p.open("5", "tools/call", `"name":"slow","arguments":{}`)
			<-backend.arrived
			p.send(`{"jsonrpc":"2.0","id":5,"method":"tools/list","params":{`+modernMeta+`}}`, nil)
			if m := first.answer(t); errorOf(m) != mcp.CodeInvalidRequest {
				t.Errorf("an id used twice: %v", m)
			}
			close(backend.release)
			if m := next(t, p.unasked); textOf(m) != "released" {
				t.Errorf("the first got %v", m)
			}
			if got := textOf(p.call("ping", "{}").answer(t)); got != "ping" {
				t.Errorf("after all that: %q", got)
			}
			if m := p.raw("", "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`).answer(t); errorOf(m) != mcp.CodeInvalidParams {
				t.Errorf("without capabilities: %v", m)
			}
			if m := p.raw("", "tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":7}`).answer(t); errorOf(m) != mcp.CodeInvalidParams {
				t.Errorf("a version that is none: %v", m)
			}
		})
	}
}

// TestLegacyConnections: what belongs to the older revisions.
func TestLegacyConnections(t *testing.T) {
	for name, connect := range connections {
		t.Run(name, func(t *testing.T) {
			c := every(tool("ping", nil))
			c.Limits.Streams = 1
			f := startAll(t, c)
			p := connect(t, f, false)
			if m := p.ask("tools/list", ""); errorOf(m) != mcp.CodeInvalidRequest {
				t.Errorf("before initialize: %v", m)
			}
			if m := p.ask("ping", ""); m["result"] == nil {
				t.Errorf("ping before initialize: %v", m)
			}
			p.initialize("2025-03-26")
			if m := p.raw("", "initialize", `"protocolVersion":"2025-03-26","capabilities":{}`).answer(t); errorOf(m) != mcp.CodeInvalidRequest {
				t.Errorf("initialize again: %v", m)
			}
			// The one revision that has batches.
			raws := make(chan string, 1)
			p.mu.Lock()
			p.raws = raws
			p.mu.Unlock()
			p.send(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"ping"}},{"jsonrpc":"2.0","id":"c","method":"initialize","params":{}}]`, nil)
			want := `[{"jsonrpc":"2.0","id":"a","result":{}},{"jsonrpc":"2.0","id":"b","result":{"content":[{"type":"text","text":"ping"}]}},{"jsonrpc":"2.0","id":"c","error":{"code":-32600,"message":"initialize cannot stand in a batch"}}]`
			if got := <-raws; got != want {
				t.Errorf("a batch gave %s", got)
			}
			if name == "stdio" {
				return // Another client is another server.
			}
			// Its stream is the one that may be open.
			other := connect(t, f, false)
			if m := other.raw("", "initialize", `"protocolVersion":"2025-06-18","capabilities":{}`).answer(t); errorOf(m) != mcp.CodeTooManyRequests {
				t.Errorf("too many streams: %v", m)
			}
			p.close()
			f.until("a free place", func() bool {
				return other.raw("", "initialize", `"protocolVersion":"2025-06-18","capabilities":{}`).answer(t)["result"] != nil
			})
		})
	}
}

// TestDrainingConnections: while calls end no new one begins.
func TestDrainingConnections(t *testing.T) {
	for name, connect := range connections {
		t.Run(name, func(t *testing.T) {
			backend := newBlockingBackend(t)
			f := startAll(t, every(tool("ping", nil), slowTool(backend.URL)))
			p := connect(t, f, true)
			running := p.call("slow", "{}")
			<-backend.arrived
			stopped := make(chan error, 1)
			go func() { stopped <- f.server.Stop(context.Background()) }()
			f.until("draining", func() bool { return errorOf(p.ask("tools/list", "")) == mcp.CodeUnavailable })
			close(backend.release)
			if got := textOf(running.answer(t)); got != "released" {
				t.Errorf("got %q", got)
			}
			must(t, <-stopped)
		})
	}
	t.Run("forced", func(t *testing.T) {
		backend := newBlockingBackend(t)
		f := startAll(t, every(slowTool(backend.URL)))
		p := connectWebSocket(t, f, true)
		p.call("slow", "{}")
		<-backend.arrived
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := f.server.Stop(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped with %v", err)
		}
		<-backend.left
		<-p.over
	})
}

// TestStartAndStop: a transport is started once, and stopped as often as one
// likes.
func TestStartAndStop(t *testing.T) {
	f := startAll(t, every())
	if err := f.memory.Start(nil); !errors.Is(err, transport.ErrStarted) {
		t.Errorf("a second start gave %v", err)
	}
	for range 2 {
		must(t, f.memory.Stop(context.Background()))
	}
	if f.memory.Dial(context.Background()) != nil {
		t.Error("a stopped transport takes a connection")
	}
	if err := f.memory.Start(nil); !errors.Is(err, transport.ErrStarted) {
		t.Errorf("a start after the stop gave %v", err)
	}
}

func TestWebSocketFrames(t *testing.T) {
	f := start(t, every(tool("ping", nil)))
	base := f.server.Addr().String() + "/ws"
	for name, want := range map[string]struct {
		request *http.Request
		status  int
	}{
		"no upgrade": {knock(t, http.MethodGet, "http://"+base, ""), http.StatusUpgradeRequired},
		"POST":       {knock(t, http.MethodPost, "http://"+base, "", upgrade...), http.StatusMethodNotAllowed},
		"a version of its own": {knock(t, http.MethodGet, "http://"+base, "", append(upgrade[:4:4], "Sec-Websocket-Version", "7", "Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")...),
			http.StatusBadRequest},
	} {
		if got := f.do(want.request); got.status != want.status {
			t.Errorf("%s: got %d", name, got.status)
		}
	}
	socket, _, err := websocket.Dial(context.Background(), "ws://"+base, &websocket.DialOptions{Subprotocols: []string{"other"}})
	must(t, err)
	defer socket.CloseNow() //nolint:errcheck // It is closed by then.
	if socket.Subprotocol() != "" {
		t.Errorf("subprotocol %q", socket.Subprotocol())
	}
	must(t, socket.Write(context.Background(), websocket.MessageBinary, []byte(`{}`)))
	if _, _, err = socket.Read(context.Background()); websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("a binary frame: %v", err)
	}
}

func TestSSEPosts(t *testing.T) {
	c := every(tool("ping", nil))
	c.Limits.MaxMessageBytes, c.Limits.Streams = 2000, 1
	f := start(t, c)
	base := "http://" + f.server.Addr().String()
	p := connectSSE(t, f, false)
	p.initialize("2024-11-05")
	post := func(path, body string) *http.Request {
		r := knock(t, http.MethodPost, base+path, "")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return r
	}
	for name, want := range map[string]struct {
		request *http.Request
		status  int
	}{
		"no session":      {post("/sse", `{}`), http.StatusMethodNotAllowed},
		"unknown session": {post("/sse?sessionId=x", `{}`), http.StatusNotFound},
		"too large":       {post(p.posts, strings.Repeat("x", 3000)), http.StatusRequestEntityTooLarge},
		"PUT":             {knock(t, http.MethodPut, base+"/sse", ""), http.StatusMethodNotAllowed},
		"another stream":  {knock(t, http.MethodGet, base+"/sse", ""), http.StatusTooManyRequests},
		"not JSON":        {post(p.posts, `{`), http.StatusAccepted},
	} {
		if got := f.do(want.request); got.status != want.status {
			t.Errorf("%s: got %d, %s", name, got.status, got.body)
		}
	}
	if m := next(t, p.unasked); errorOf(m) != mcp.CodeParseError {
		t.Errorf("got %v", m)
	}
	p.close()
	f.until("the end of the session", func() bool { return f.do(post(p.posts, `{}`)).status == http.StatusNotFound })
}

// TestOnlyNamedTransports: a path is served only if the catalog names its
// transport, and moves with it.
func TestOnlyNamedTransports(t *testing.T) {
	c := config(tool("ping", nil))
	f := start(t, c)
	statuses := func() string {
		var out []int
		for _, path := range []string{"/mcp", "/sse", "/ws", "/events"} {
			r := knock(t, http.MethodOptions, "http://"+f.server.Addr().String()+path, "")
			out = append(out, f.do(r).status)
		}
		return fmt.Sprint(out)
	}
	if got := statuses(); got != "[204 404 404 404]" {
		t.Errorf("by default: %s", got)
	}
	c = every(tool("ping", nil))
	c.Transports = []serverconfig.Transport{{Type: serverconfig.TransportSSE, Path: "/events"}, {Type: serverconfig.TransportWebSocket, Path: "/ws"}}
	f.reload(c)
	if got := statuses(); got != "[404 404 204 204]" {
		t.Errorf("with others: %s", got)
	}
}

// TestSSEOverReplicas: a message may be posted to any replica; its answer
// comes on the stream, wherever that is.
func TestSSEOverReplicas(t *testing.T) {
	f := startFleet(t, every(tool("ping", nil)))
	p := connectSSE(t, f.replicas[0], false)
	post := func(at *fixture, body string) answer {
		r := knock(t, http.MethodPost, "http://"+at.server.Addr().String()+p.posts, "", "Content-Type", "application/json")
		r.Body = io.NopCloser(strings.NewReader(body))
		return at.do(r)
	}
	p.initialize("2024-11-05")
	for i, at := range f.replicas {
		if got := post(at, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":"ping"}}`, i)); got.status != http.StatusAccepted {
			t.Errorf("posting to replica %d: %d, %s", i, got.status, got.body)
		}
		if m := next(t, p.unasked); m["id"] != fmt.Sprint(i) || textOf(m) != "ping" {
			t.Errorf("the answer to what was posted to replica %d is %v", i, m)
		}
	}
	p.close()
	for _, at := range f.replicas {
		at.until("a stream that is over", func() bool { return post(at, `{}`).status == http.StatusNotFound })
	}
	f.remove(0)
	f.replicas[1].until("an owner that is gone", func() bool { return post(f.replicas[1], `{}`).status == http.StatusNotFound })
}
