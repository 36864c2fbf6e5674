// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/session"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

const (
	keyProgressToken = "progressToken"
	ownPrefix        = "mcp.espalier.dev/"
	// defaultLevel is that of a session whose client never said one.
	defaultLevel = "info"
)

// protocolPrefixes are of keys of _meta that belong to the protocol.
var protocolPrefixes = []string{"io.modelcontextprotocol/", "modelcontextprotocol.io/", ownPrefix}

// reservedMeta reports whether a key of _meta is not the users' own.
func reservedMeta(key string) bool {
	for _, prefix := range protocolPrefixes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// passOn gives a call what reaches beyond this server: the caller's own keys
// of _meta, the count of hops, what answers an earlier question, and the way
// back to the caller. finish must be called with the answer.
func (e *Engine) passOn(r *Request, c *call.Call) *back {
	e.passMeta(r.Message.Meta, c)
	w := &r.back
	w.request = r
	if r.Era == Modern {
		if raw := r.Message.Params.Get("inputResponses"); wire.IsObject(raw) {
			c.Responses = raw
		}
		if raw := r.Message.Params.Get("requestState"); len(raw) > 0 && raw[0] == '"' {
			c.State = raw
		}
	}
	if r.Era == Modern || r.Session != nil {
		c.Client = w
	}
	token := r.Message.Meta.Get(keyProgressToken)
	if token != nil && string(token) != "null" && w.streams() {
		w.token = token
		c.Progress = w.progress
	}
	return w
}

// passMeta gives a call the caller's own keys of _meta, and the count of hops.
func (e *Engine) passMeta(meta wire.Object, c *call.Call) {
	for _, field := range meta {
		switch {
		case field.Key == mcp.MetaHops:
			// What is no number counts as none; a peer that wants to run in a
			// circle could leave it out as well.
			c.Hops, _ = strconv.Atoi(string(field.Raw))
		case e.tracer != nil && (field.Key == tracing.KeyTraceparent || field.Key == tracing.KeyTracestate):
			// The span of the call goes on in its place.
		case field.Key != keyProgressToken && !reservedMeta(field.Key):
			if len(c.Meta) > 0 {
				c.Meta = append(c.Meta, ',')
			}
			c.Meta = append(wire.AppendString(c.Meta, field.Key), ':')
			c.Meta = append(c.Meta, field.Raw...)
		}
	}
}

// back is the way back to the caller of one call. It turns the answer into a
// stream at the first thing that there is to say before it.
type back struct {
	request *Request
	token   []byte

	mu     sync.Mutex
	stream Stream
	failed bool
	stop   chan struct{}
}

var _ call.Client = (*back)(nil)

// Modern implements call.Client.
func (w *back) Modern() bool { return w.request.Era == Modern }

// Capabilities implements call.Client.
func (w *back) Capabilities() json.RawMessage {
	if s := w.request.Session; s != nil {
		return s.Capabilities()
	}
	if raw := w.request.Message.Meta.Get(mcp.MetaClientCapabilities); wire.IsObject(raw) {
		return raw
	}
	return json.RawMessage("{}")
}

// Session implements call.Client.
func (w *back) Session() string {
	if w.request.Session == nil {
		return ""
	}
	return w.request.Session.ID
}

// LogLevel implements call.Client.
func (w *back) LogLevel() string {
	if s := w.request.Session; s != nil {
		if level := s.Level(); level != "" {
			return level
		}
		return defaultLevel
	}
	level, _ := w.request.Message.Meta.Text(mcp.MetaLogLevel)
	return level
}

// needs is the capability that a client must have declared to be asked.
var needs = map[string]string{mcp.MethodCreateMessage: "sampling", mcp.MethodElicit: "elicitation", mcp.MethodListRoots: "roots"}

// Ask implements call.Client: on the stream of the request that the question
// belongs to, else on the session's standing stream.
func (w *back) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	s := w.request.Session
	if s == nil || w.Modern() {
		return nil, call.ErrCannotAsk
	}
	if capability, known := needs[method]; known {
		declared, err := wire.DecodeObject(s.Capabilities())
		if err != nil || !wire.IsObject(declared.Get(capability)) {
			return nil, call.ErrCannotAsk
		}
	}
	if !w.streams() {
		return s.Ask(ctx, method, params, nil)
	}
	return s.Ask(ctx, method, params, w.tell)
}

// Notify implements call.Client.
func (w *back) Notify(method string, params json.RawMessage) {
	out := wire.AppendField([]byte(`{"jsonrpc":"2.0"`), "method", wire.AppendString(nil, method))
	if params != nil {
		out = wire.AppendField(out, "params", params)
	}
	out = append(out, '}')
	switch {
	case w.streams():
		_ = w.tell(out) // A client that is gone misses nothing.
	case w.request.Session != nil:
		_ = w.request.Session.Push(out)
	}
}

func (w *back) streams() bool { return w.request.Streams && w.request.Open != nil }

// progress sends one notification with the caller's own token.
func (w *back) progress(params wire.Object) {
	out := []byte(`{"jsonrpc":"2.0","method":"` + mcp.NotificationProgress + `","params":{"` + keyProgressToken + `":`)
	out = append(out, w.token...)
	for _, field := range params {
		if field.Key != keyProgressToken && field.Key != "_meta" {
			out = wire.AppendField(out, field.Key, field.Raw)
		}
	}
	_ = w.tell(append(out, "}}"...)) // A client that is gone ends the call as well.
}

// tell sends a message before the answer.
func (w *back) tell(message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil && !w.failed {
		stream, err := w.request.Open()
		if err != nil {
			w.failed = true // The client is gone.
			return err
		}
		w.stream, w.stop = stream, make(chan struct{})
		go w.keepAlive(w.stop)
	}
	return w.send(message)
}

// send writes a message on one line, as a stream has it. It is called with
// the lock held.
func (w *back) send(message []byte) error {
	if w.failed {
		return call.ErrCannotAsk
	}
	err := w.stream.Send(wire.OneLine(message))
	w.failed = err != nil
	return err
}

func (w *back) keepAlive(stop <-chan struct{}) {
	ticker := time.NewTicker(session.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			w.mu.Lock()
			select {
			case <-stop: // The answer has gone out: the stream is no longer ours.
			default:
				w.failed = w.failed || w.stream.KeepAlive() != nil
			}
			w.mu.Unlock()
		}
	}
}

// finish sends the answer on the stream, if there is one.
func (w *back) finish(reply Reply) Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stream == nil {
		reply.Streamed = w.failed
		return reply
	}
	_ = w.send(reply.Body) // A client that is gone is no error of ours.
	close(w.stop)
	return Reply{Streamed: true}
}
