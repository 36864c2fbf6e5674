// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Request is a request of a caller: of any method but tools/call, which has
// Call.
type Request struct {
	Method string
	// Name is what Mcp-Name mirrors; empty for nothing.
	Name string
	// Params and Meta are members of an object without its braces.
	Params, Meta []byte
	// Header mirrors arguments, see Mirror.
	Header http.Header
	Aside
}

// Call is one tools/call.
type Call struct {
	Tool string
	// Args is a raw object.
	Args []byte
	// Header mirrors arguments, see Mirror.
	Header http.Header
	// Meta are further members of _meta, without braces.
	Meta []byte
	Aside
}

// Aside is what goes beside a request, to and fro.
type Aside struct {
	// Capabilities is the raw object that the caller declares, nil for none;
	// LogLevel is the least level of the log messages that it wants, empty for
	// none. Both are told to modern servers only: a legacy one was told when
	// the session began.
	Capabilities []byte
	LogLevel     string
	// Responses and State are the raw inputResponses and requestState of a
	// modern retry, nil for none.
	Responses, State []byte
	// Progress, if set, is given the params of the server's progress, Notify
	// other notifications that came with the answer over HTTP. They may be
	// called by several goroutines, but by none after the request returned.
	Progress func(params wire.Object)
	Notify   func(method string, params json.RawMessage)
}

// Call calls a tool and gives the raw result.
func (s *Session) Call(ctx context.Context, c *Call) ([]byte, error) {
	params := append([]byte(`"name":`), wire.AppendString(nil, c.Tool)...)
	params = wire.AppendField(params, "arguments", c.Args)
	return s.Request(ctx, &Request{
		Method: mcp.MethodToolsCall, Name: c.Tool, Params: params, Meta: c.Meta, Header: c.Header, Aside: c.Aside,
	})
}

// Request sends a request and gives the raw result.
func (s *Session) Request(ctx context.Context, r *Request) ([]byte, error) {
	m := &message{
		id: s.next(), method: r.Method, name: r.Name, header: r.Header, capabilities: r.Capabilities,
		params: r.Params[:len(r.Params):len(r.Params)], meta: r.Meta[:len(r.Meta):len(r.Meta)],
	}
	m.params = addMember(m.params, "inputResponses", r.Responses)
	m.params = addMember(m.params, "requestState", r.State)
	if s.revision.modern && r.LogLevel != "" {
		m.meta = addMember(m.meta, mcp.MetaLogLevel, wire.AppendString(nil, r.LogLevel))
	}
	gate := &gate{}
	defer gate.shut()
	if r.Progress != nil {
		m.meta = addMember(m.meta, "progressToken", strconv.AppendInt(nil, m.id, 10))
		s.progress.Store(m.id, func(params wire.Object) { gate.pass(func() { r.Progress(params) }) })
		defer s.progress.Delete(m.id)
	}
	if r.Notify != nil {
		m.hear = func(in incoming) bool {
			method, _ := wire.Text(in.method)
			if method != mcp.NotificationMessage && method != mcp.NotificationElicitationComplete {
				return false
			}
			gate.pass(func() { r.Notify(method, in.params) })
			return true
		}
	}
	result, err := s.traced(ctx, r, m)
	return result, inPhase(err, PhaseCall)
}

// addMember adds a member to an object without its braces; nil adds nothing.
func addMember(dst []byte, key string, raw []byte) []byte {
	if raw == nil {
		return dst
	}
	if len(dst) > 0 {
		return wire.AppendField(dst, key, raw)
	}
	return append(append(wire.AppendString(dst, key), ':'), raw...)
}

// SetLevel tells a legacy server which log messages this session wants.
func (s *Session) SetLevel(ctx context.Context, level string) error {
	params := append([]byte(`"level":`), wire.AppendString(nil, level)...)
	_, err := s.carrier.request(ctx, &message{id: s.next(), method: mcp.MethodSetLevel, params: params})
	return inPhase(err, PhaseCall)
}

// RootsChanged tells a legacy server that the client's roots changed.
func (s *Session) RootsChanged(ctx context.Context) error {
	if s.revision.modern {
		return nil
	}
	return s.carrier.notify(ctx, &message{method: mcp.NotificationRootsChanged})
}

// gate lets calls pass until it is shut.
type gate struct {
	mu     sync.Mutex
	closed bool
}

func (g *gate) pass(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		f()
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func cancelNote(id int64) *message {
	return &message{
		method: mcp.NotificationCancelled,
		params: append(strconv.AppendInt([]byte(`"requestId":`), id, 10), `,"reason":"cancelled"`...),
	}
}
