// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakemcp is an MCP server for tests that can be told to misbehave. By
// itself it is a small, correct server of the legacy era with sessions; with
// Modern set it speaks the modern era too, or alone. It records each request
// and counts open sessions.
//
// A misbehaviour is a Handler for one method, or for everything (Any). Modes
// names the common ones, for a process that is told by flag or by HTTP.
package fakemcp

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Request is one recorded request.
type Request struct {
	Time time.Time
	// HTTP is the HTTP method, Path the path.
	HTTP, Path string
	Header     http.Header
	Host       string
	// Method of the JSON-RPC message; empty for a response or no message.
	Method string
	Body   []byte
}

// Handler answers one request.
type Handler func(*Call)

// Keys for On beside the JSON-RPC methods.
const (
	// Any is asked first, for every HTTP request.
	Any = "*"
	// Reply is a JSON-RPC response of the client.
	Reply = "reply"
	// GET and DELETE on the MCP path.
	GET    = "GET"
	DELETE = "DELETE"
)

// Server is the fake. Its zero value is not usable: New.
type Server struct {
	mu       sync.Mutex
	handlers map[string]Handler
	requests []Request
	sessions map[string]bool
	opened   int
	most     int
	hung     chan struct{}

	// Settings are read at each answer. Set them before serving.
	Settings Settings
}

// Settings of a well-behaved server.
type Settings struct {
	// Modern, Legacy: the eras spoken.
	Modern, Legacy bool
	// Name of the server.
	Name string
	// Version that initialize answers.
	Version string
	// Stateless: no session is opened or required.
	Stateless bool
	// TTLMs is for how long a modern answer says that it holds.
	TTLMs int
	// Capabilities; nil leaves the member out.
	Capabilities map[string]any
	// Tools, Resources and Prompts that are listed on one page.
	Tools, Resources, Prompts []json.RawMessage
}

// New makes the base server: legacy 2025-06-18, one tool "alpha".
func New() *Server {
	return &Server{
		handlers: map[string]Handler{},
		sessions: map[string]bool{},
		hung:     make(chan struct{}),
		Settings: Settings{
			Legacy:       true,
			Name:         "fake",
			TTLMs:        5000,
			Version:      "2025-06-18",
			Capabilities: map[string]any{"tools": map[string]any{}},
			Tools:        []json.RawMessage{Tool("alpha")},
		},
	}
}

// Tool is a minimal definition.
func Tool(name string) json.RawMessage {
	encoded, err := json.Marshal(map[string]any{"name": name, "inputSchema": map[string]any{"type": "object"}})
	if err != nil {
		panic(err)
	}
	return encoded
}

// SetTools makes the server list n tools: alpha, tool-2, tool-3, ...
func (s *Server) SetTools(n int) {
	tools := make([]json.RawMessage, 0, n)
	for i := range n {
		name := "alpha"
		if i > 0 {
			name = "tool-" + strconv.Itoa(i+1)
		}
		tools = append(tools, Tool(name))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Settings.Tools = tools
}

// settings gives a copy for one answer.
func (s *Server) settings() Settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Settings
}

// On sets the handler of a method or of one of the keys above; nil restores
// the default.
func (s *Server) On(key string, h Handler) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h == nil {
		delete(s.handlers, key)
	} else {
		s.handlers[key] = h
	}
	return s
}

// Reset removes all handlers that were set.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.handlers)
}

// Release ends all requests that hang.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.hung)
	s.hung = make(chan struct{})
}

func (s *Server) handler(key string) Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handlers[key]
}

// Requests that were recorded, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count of recorded requests with a JSON-RPC or HTTP method.
func (s *Server) Count(method string) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Method == method || r.HTTP == method {
			n++
		}
	}
	return n
}

// OpenSessions is how many sessions are open; MostSessions how many were at once.
func (s *Server) OpenSessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// MostSessions is how many sessions were ever open at once.
func (s *Server) MostSessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// maxRecorded bounds the memory of a fake that serves a cluster for long.
const maxRecorded = 10000

// ServeHTTP is http.Handler's.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	c := &Call{Server: s, Settings: s.settings(), W: w, R: r}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &m) == nil {
		c.ID, c.Method, c.Params = m.ID, m.Method, m.Params
	}
	s.note(r, m.Method, body)
	if h := s.handler(Any); h != nil {
		h(c)
		return
	}
	c.Default()
}

// record notes a request without a message.
func (s *Server) record(r *http.Request) { s.note(r, "", nil) }

func (s *Server) note(r *http.Request, method string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) < maxRecorded {
		s.requests = append(s.requests, Request{
			Time: time.Now(), HTTP: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Host: r.Host,
			Method: method, Body: body,
		})
	}
}

// open makes a session and gives its id.
func (s *Server) open() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	id := "s-" + strconv.Itoa(s.opened)
	s.sessions[id] = true
	s.most = max(s.most, len(s.sessions))
	return id
}

func (s *Server) known(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *Server) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// Call is one request and the ways to answer it.
type Call struct {
	*Server
	// Settings at the time of the request.
	Settings Settings

	W http.ResponseWriter
	R *http.Request
	// ID, Method and Params of the JSON-RPC message.
	ID     json.RawMessage
	Method string
	Params json.RawMessage
}

// Cursor of a list request.
func (c *Call) Cursor() string {
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(c.Params, &p)
	return p.Cursor
}

// Text answers with a status, a content type (empty for none) and a body.
func (c *Call) Text(status int, contentType, body string) {
	if contentType == "" {
		c.W.Header()["Content-Type"] = nil
	} else {
		c.W.Header().Set("Content-Type", contentType)
	}
	c.W.WriteHeader(status)
	_, _ = io.WriteString(c.W, body)
}

// Response is the JSON of a response with result to this call.
func (c *Call) Response(result any) string {
	encoded, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.ID, "result": result})
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// ErrorResponse is the JSON of an error response to this call.
func (c *Call) ErrorResponse(code int, message string, data any) string {
	e := map[string]any{"code": code, "message": message}
	if data != nil {
		e["data"] = data
	}
	encoded, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.ID, "error": e})
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// Result answers with a result as JSON.
func (c *Call) Result(result any) { c.Text(http.StatusOK, "application/json", c.Response(result)) }

// Error answers with an error as JSON and a status.
func (c *Call) Error(status, code int, message string, data any) {
	c.Text(status, "application/json", c.ErrorResponse(code, message, data))
}

// Stream begins an event stream and sends what it is given, piece by piece.
func (c *Call) Stream(pieces ...string) {
	c.W.Header().Set("Content-Type", "text/event-stream")
	c.W.WriteHeader(http.StatusOK)
	for _, p := range pieces {
		c.Send(p)
	}
}

// Send writes a piece of a body and flushes it.
func (c *Call) Send(piece string) {
	_, _ = io.WriteString(c.W, piece)
	_ = http.NewResponseController(c.W).Flush()
}

// Data is one event with data.
func Data(data string) string { return fmt.Sprintf("data: %s\n\n", data) }

// Hang waits until the client is gone, or Release.
func (c *Call) Hang() {
	c.mu.Lock()
	hung := c.hung
	c.mu.Unlock()
	select {
	case <-c.R.Context().Done():
	case <-hung:
	}
}

// Drop closes the connection without an answer.
func (c *Call) Drop() { panic(http.ErrAbortHandler) }
