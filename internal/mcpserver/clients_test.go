// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/stdio"
	"github.com/espalier-dev/espalier/internal/sse"
)

type message = map[string]any

// exchange is one request and what came for it.
type exchange struct {
	id string
	// messages that belong to it, the answer last; closed after that, and when
	// the connection is over.
	messages chan message
	cancel   func()
}

// answer of an exchange.
func (x *exchange) answer(t *testing.T) message {
	t.Helper()
	for {
		if m := next(t, x.messages); m["method"] == nil {
			return m
		}
	}
}

// client is one over one transport in one era.
type client struct {
	t      *testing.T
	modern bool
	// send posts a message; what comes for it is handed to take. It does not
	// wait for an answer.
	send func(raw string, x *exchange)
	// giveUp cancels a request as the transport has it.
	giveUp func(x *exchange)
	close  func()
	// over is closed when the server has ended the connection, or the stream
	// of the session.
	over chan struct{}
	// unasked is what comes outside of answers, requests of the server too.
	unasked chan message
	// raws, if set, is given what comes as it is, once.
	raws chan string
	// posts is where messages go, over SSE.
	posts string

	mu      sync.Mutex
	last    int
	waiting map[string]*exchange
	ended   bool
}

func newClient(t *testing.T, modern bool) *client {
	p := &client{t: t, modern: modern, over: make(chan struct{}), unasked: make(chan message, 100), waiting: map[string]*exchange{}}
	p.giveUp = func(x *exchange) {
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+x.id+`}}`, nil)
	}
	return p
}

// open sends a request. params are members without braces; id is raw, a new
// number when it is empty.
func (p *client) open(id, method, params string) *exchange {
	p.t.Helper()
	if p.modern {
		if params != "" {
			params += ","
		}
		params += modernMeta
	}
	return p.raw(id, method, params)
}

func (p *client) raw(id, method, params string) *exchange {
	p.mu.Lock()
	if p.last++; id == "" {
		id = strconv.Itoa(p.last)
	}
	x := &exchange{id: id, messages: make(chan message, 100)}
	x.cancel = func() { p.giveUp(x) }
	p.waiting[id] = x
	p.mu.Unlock()
	p.send(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`}}`, x)
	return x
}

func (p *client) ask(method, params string) message {
	p.t.Helper()
	return p.open("", method, params).answer(p.t)
}

func (p *client) call(tool, args string) *exchange {
	return p.open("", "tools/call", `"name":"`+tool+`","arguments":`+args)
}

func (p *client) initialize(version string) message {
	p.t.Helper()
	m := p.raw("", "initialize", `"protocolVersion":"`+version+`","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}`).answer(p.t)
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	return m
}

// take hands a message that came on a connection of all to whom it belongs.
func (p *client) take(raw []byte) {
	p.mu.Lock()
	raws := p.raws
	p.raws = nil
	p.mu.Unlock()
	if raws != nil {
		raws <- string(raw)
		return
	}
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		p.t.Errorf("not a message: %s", raw)
		return
	}
	if bytes.ContainsAny(raw, "\r\n") {
		p.t.Errorf("a message on several lines: %s", raw)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if m["method"] == nil {
		id, _ := json.Marshal(m["id"])
		if x := p.waiting[string(id)]; x != nil {
			x.messages <- m
			close(x.messages)
			delete(p.waiting, string(id))
			return
		}
	} else if tag := subscription(m); tag != nil {
		id, _ := json.Marshal(tag)
		if x := p.waiting[string(id)]; x != nil {
			x.messages <- m
			return
		}
	}
	p.unasked <- m
}

// end says that nothing comes any more.
func (p *client) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	for _, x := range p.waiting {
		close(x.messages)
	}
	close(p.over)
}

// connector makes peers over one transport.
type connector func(t *testing.T, f *fixture, modern bool) *client

func connectMemory(t *testing.T, f *fixture, modern bool) *client {
	p := newClient(t, modern)
	conn := f.memory.Dial(context.Background())
	if conn == nil {
		t.Fatal("no connection")
	}
	p.send = func(raw string, _ *exchange) { _ = conn.Write(context.Background(), []byte(raw)) }
	p.close = conn.Close
	t.Cleanup(conn.Close)
	go func() {
		defer p.end()
		for {
			raw, err := conn.Read(context.Background(), 1<<20)
			if err != nil {
				return
			}
			p.take(raw)
		}
	}()
	return p
}

func connectStdio(t *testing.T, f *fixture, modern bool) *client {
	p := newClient(t, modern)
	conn := stdio.NewConn(f.stdout, f.stdin)
	p.send = func(raw string, _ *exchange) { _ = conn.Write(context.Background(), []byte(raw)) }
	p.close = func() { _ = f.stdin.Close() }
	t.Cleanup(p.close)
	go func() {
		<-f.server.Ended()
		_ = f.stdoutEnd.Close() // As the end of the process does.
	}()
	go func() {
		defer p.end()
		for {
			raw, err := conn.Read(context.Background(), 1<<20)
			if err != nil {
				return
			}
			p.take(bytes.TrimSuffix(raw, []byte("\n")))
		}
	}()
	return p
}

func connectWebSocket(t *testing.T, f *fixture, modern bool) *client {
	return connectWebSocketAs(t, f, modern, "")
}

func connectWebSocketAs(t *testing.T, f *fixture, modern bool, token string) *client {
	p := newClient(t, modern)
	options := &websocket.DialOptions{Subprotocols: []string{"mcp"}}
	if token != "" {
		options.HTTPHeader = http.Header{"Authorization": {"Bearer " + token}}
	}
	socket, _, err := websocket.Dial(context.Background(), "ws://"+f.server.Addr().String()+"/ws", options)
	must(t, err)
	if socket.Subprotocol() != "mcp" {
		t.Errorf("subprotocol %q", socket.Subprotocol())
	}
	p.send = func(raw string, _ *exchange) {
		_ = socket.Write(context.Background(), websocket.MessageText, []byte(raw))
	}
	p.close = func() { _ = socket.Close(websocket.StatusNormalClosure, "") }
	t.Cleanup(func() { _ = socket.CloseNow() })
	go func() {
		defer p.end()
		for {
			_, raw, err := socket.Read(context.Background())
			if err != nil {
				return
			}
			p.take(raw)
		}
	}()
	return p
}

func connectSSE(t *testing.T, f *fixture, modern bool) *client {
	return connectSSEAs(t, f, modern, "")
}

func connectSSEAs(t *testing.T, f *fixture, modern bool, token string) *client {
	p := newClient(t, modern)
	base := "http://" + f.server.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/sse", nil)
	must(t, err)
	r.Header.Set("Accept", "text/event-stream")
	response, err := f.client.Do(as(r, token))
	must(t, err)
	events := sse.NewReader(response.Body)
	first, err := events.Next()
	must(t, err)
	if first.Kind != "endpoint" || !strings.HasPrefix(string(first.Data), "/sse?sessionId=") {
		t.Fatalf("first event %q: %s", first.Kind, first.Data)
	}
	p.posts = string(first.Data)
	p.send = func(raw string, _ *exchange) {
		r, err := http.NewRequest(http.MethodPost, base+p.posts, strings.NewReader(raw))
		must(t, err)
		r.Header.Set("Content-Type", "application/json")
		response, err := f.client.Do(as(r, token))
		if err != nil {
			return // The server is gone, which is seen on the stream.
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusAccepted {
			t.Logf("posting gave %s", response.Status)
		}
	}
	p.close = cancel
	go func() {
		defer p.end()
		defer response.Body.Close()
		for {
			event, err := events.Next()
			if err != nil {
				return
			}
			if event.Kind != "message" {
				t.Errorf("event %q", event.Kind)
			}
			p.take(event.Data)
		}
	}()
	return p
}

// connectHTTP: each request is a POST of its own, and what comes for it comes
// on its answer.
func connectHTTP(t *testing.T, f *fixture, modern bool) *client {
	p := newClient(t, modern)
	h := &httpClient{client: p, f: f, cancels: map[*exchange]context.CancelFunc{}}
	p.send = h.post
	if modern {
		p.giveUp = func(x *exchange) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.cancels[x]()
		}
	}
	p.close = h.leave
	t.Cleanup(h.leave)
	return p
}

type httpClient struct {
	*client
	f       *fixture
	session string
	cancels map[*exchange]context.CancelFunc
}

func (h *httpClient) post(raw string, x *exchange) {
	ctx, cancel := context.WithCancel(context.Background())
	r := h.f.post(raw).WithContext(ctx)
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string         `json:"name"`
			Meta map[string]any `json:"_meta"`
		} `json:"params"`
	}
	must(h.t, json.Unmarshal([]byte(raw), &m))
	if version, ok := m.Params.Meta[mcp.MetaProtocolVersion].(string); ok {
		r.Header.Set("Mcp-Protocol-Version", version)
		r.Header.Set("Mcp-Method", m.Method)
		if m.Method == "tools/call" {
			r.Header.Set("Mcp-Name", m.Params.Name)
		}
	}
	h.mu.Lock()
	if h.session != "" {
		r.Header.Set("Mcp-Session-Id", h.session)
	}
	if x != nil {
		h.cancels[x] = cancel
	}
	h.mu.Unlock()
	finish := func() {
		defer cancel()
		response, err := h.f.client.Do(r)
		if err != nil {
			h.done(x)
			return
		}
		defer response.Body.Close()
		h.read(response, x)
	}
	if x == nil || m.Method == "initialize" {
		finish() // What follows needs it.
		return
	}
	go finish()
}

func (h *httpClient) read(response *http.Response, x *exchange) {
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		h.mu.Lock()
		h.session = id
		h.mu.Unlock()
		h.stand(id)
	}
	defer h.done(x)
	if x == nil {
		return
	}
	if response.Header.Get("Content-Type") == "text/event-stream" {
		events := sse.NewReader(response.Body)
		for {
			event, err := events.Next()
			if err != nil {
				return
			}
			h.hand(event.Data, x)
		}
	}
	if raw, err := io.ReadAll(response.Body); err == nil && len(raw) > 0 {
		h.hand(raw, x)
	}
}

// hand gives the client a message of an answer; a question is none of it.
func (h *httpClient) hand(raw []byte, x *exchange) {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		h.t.Errorf("not a message: %s", raw)
		return
	}
	if m["method"] != nil && m["id"] != nil {
		h.unasked <- m
		return
	}
	x.messages <- m
}

func (h *httpClient) done(x *exchange) {
	if x == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting[x.id] == x {
		delete(h.waiting, x.id)
		close(x.messages)
	}
}

// stand opens the standing stream of a session.
func (h *httpClient) stand(id string) {
	r, err := http.NewRequest(http.MethodGet, h.f.url(), nil)
	must(h.t, err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", id)
	response, err := h.f.client.Do(r)
	must(h.t, err)
	if response.StatusCode != http.StatusOK {
		h.t.Fatalf("the standing stream gave %s", response.Status)
	}
	go func() {
		defer response.Body.Close()
		defer close(h.over)
		events := sse.NewReader(response.Body)
		for {
			event, err := events.Next()
			if err != nil {
				return
			}
			h.take(event.Data)
		}
	}()
}

// leave ends the session, or all requests where there is none.
func (h *httpClient) leave() {
	h.mu.Lock()
	id := h.session
	h.session = ""
	cancels := h.cancels
	h.cancels = map[*exchange]context.CancelFunc{}
	h.mu.Unlock()
	if id == "" {
		for _, cancel := range cancels {
			cancel()
		}
		return
	}
	r, _ := http.NewRequest(http.MethodDelete, h.f.url(), nil)
	r.Header.Set("Mcp-Session-Id", id)
	if response, err := h.f.client.Do(r); err == nil {
		_ = response.Body.Close()
	}
}
