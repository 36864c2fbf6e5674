// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"net/http"
	"strconv"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// message is a request or a notification on its way out.
type message struct {
	// id is 0 for a notification.
	id     int64
	method string
	// params and meta are members of an object without its braces.
	params, meta []byte
	// name is what Mcp-Name mirrors, header further mirrored parameters.
	name   string
	header http.Header
	// capabilities that a modern request declares, nil for none.
	capabilities []byte
	// traceparent and tracestate are the trace context, in headers as well as
	// in meta; empty for none.
	traceparent, tracestate string
	// lastEvent is after which event of a stream the server is to go on; empty
	// for none.
	lastEvent string
	// hear takes a notification that came with the answer, or leaves it.
	hear func(incoming) bool
}

// revision is what a session has agreed on.
type revision struct {
	version string
	modern  bool
}

// encode writes m as it is sent in revision r.
func (m *message) encode(r revision, version string) []byte {
	out := []byte(`{"jsonrpc":"2.0"`)
	if m.id != 0 {
		out = append(out, `,"id":`...)
		out = strconv.AppendInt(out, m.id, 10)
	}
	out = wire.AppendField(out, "method", wire.AppendString(nil, m.method))
	meta := m.meta
	if r.modern && m.id != 0 {
		meta = modernMeta(r, version, m.capabilities, meta)
	}
	if len(m.params) == 0 && len(meta) == 0 {
		return append(out, '}')
	}
	out = append(out, `,"params":{`...)
	out = append(out, m.params...)
	if len(meta) > 0 {
		if len(m.params) > 0 {
			out = append(out, ',')
		}
		out = append(out, `"_meta":{`...)
		out = append(out, meta...)
		out = append(out, '}')
	}
	return append(out, "}}"...)
}

// modernMeta is what each modern request carries.
func modernMeta(r revision, version string, capabilities, more []byte) []byte {
	if capabilities == nil {
		capabilities = []byte("{}")
	}
	out := append([]byte(`"`+mcp.MetaProtocolVersion+`":`), wire.AppendString(nil, r.version)...)
	out = wire.AppendField(out, mcp.MetaClientCapabilities, capabilities)
	out = wire.AppendField(out, mcp.MetaClientInfo, clientInfo(version))
	if len(more) > 0 {
		out = append(out, ',')
		out = append(out, more...)
	}
	return out
}

func clientInfo(version string) []byte {
	out := wire.AppendField([]byte(`{"name":"espalier"`), "version", wire.AppendString(nil, version))
	return append(out, '}')
}

// headers that mirror m in revision r.
func (m *message) headers(r revision, into http.Header) {
	if r.version != "" && m.method != mcp.MethodInitialize {
		into.Set(mcp.HeaderProtocolVersion, r.version)
	}
	if m.traceparent != "" {
		into.Set(tracing.HeaderTraceparent, m.traceparent)
		if m.tracestate != "" {
			into.Set(tracing.HeaderTracestate, m.tracestate)
		}
	}
	if m.lastEvent != "" {
		into.Set(headerLastEventID, m.lastEvent)
	}
	if !r.modern {
		return
	}
	into.Set(mcp.HeaderMethod, m.method)
	if m.name != "" {
		into.Set(mcp.HeaderName, HeaderText(m.name))
	}
	for name, values := range m.header {
		into[name] = values
	}
}

// incoming is a message of the peer.
type incoming struct {
	id, method, params, result, failure []byte
}

func parse(raw []byte) (incoming, bool) {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return incoming{}, false
	}
	if version, _ := object.Text("jsonrpc"); version != "2.0" {
		return incoming{}, false
	}
	return incoming{
		id: object.Get("id"), method: object.Get("method"), params: object.Get("params"),
		result: object.Get("result"), failure: object.Get("error"),
	}, true
}

// parseAll reads one message, or a batch of revision 2025-03-26.
func parseAll(raw []byte) []incoming {
	if !wire.IsBatch(raw) {
		if m, ok := parse(raw); ok {
			return []incoming{m}
		}
		return nil
	}
	batch, err := wire.DecodeBatch(raw)
	if err != nil {
		return nil
	}
	var out []incoming
	for _, one := range batch {
		if m, ok := parse(one); ok {
			out = append(out, m)
		}
	}
	return out
}

func (m *incoming) isRequest() bool      { return m.method != nil && m.id != nil }
func (m *incoming) isNotification() bool { return m.method != nil && m.id == nil }

// answers reports whether m is the response to the request id. Some servers
// send a number back as a string.
func (m *incoming) answers(id int64) bool {
	if m.method != nil || m.result == nil && m.failure == nil {
		return false
	}
	text := strconv.FormatInt(id, 10)
	return string(m.id) == text || string(m.id) == `"`+text+`"`
}

// outcome of a response.
func (m *incoming) outcome(status int) ([]byte, error) {
	if m.failure != nil {
		return nil, rpcError(m.failure, status)
	}
	if !wire.IsObject(m.result) {
		return nil, &Error{Reason: NotMCP, Status: status}
	}
	return m.result, nil
}

func rpcError(raw []byte, status int) *RPCError {
	out := &RPCError{Status: status}
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return out
	}
	out.Code, _ = strconv.Atoi(string(object.Get("code")))
	out.Message, _ = object.Text("message")
	out.Data = object.Get("data")
	return out
}

// reply to a request of the peer that no client is asked: ping is answered, all
// else is unknown.
func (m *incoming) reply() []byte {
	if method, _ := wire.Text(m.method); method == mcp.MethodPing {
		return wire.AppendResult(nil, m.id, []byte("{}"))
	}
	return wire.AppendError(nil, m.id, &wire.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"})
}
