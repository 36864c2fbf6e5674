// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
)

const (
	// maxMirrored is how many tools are remembered whose arguments are mirrored.
	maxMirrored = 4096
	// maxPages is how many pages of tools the bridge reads by itself.
	maxPages = 64
)

// mirror knows which arguments of which tool stand in headers too, in the
// modern era. A client over stdio has no headers: the bridge reads it from the
// lists that pass.
type mirror struct {
	mu    sync.Mutex
	tools map[string][]schema.HeaderParam
}

func newMirror() *mirror { return &mirror{tools: map[string][]schema.HeaderParam{}} }

// reading gives a take that learns from what passes.
func (r *mirror) reading(to take) take {
	return func(p packet) {
		for i := range p.parts {
			if p.parts[i].result != nil {
				r.learn(p.parts[i].result)
			}
		}
		to(p)
	}
}

// learn reads a result of tools/list.
func (r *mirror) learn(result []byte) {
	object, err := wire.DecodeObject(result)
	if err != nil {
		return
	}
	for _, raw := range rawList(object.Get("tools")) {
		tool, err := wire.DecodeObject(raw)
		if err != nil {
			continue
		}
		if name, ok := tool.Text("name"); ok {
			r.note(name, tool.Get("inputSchema"))
		}
	}
}

// rawList gives the members of a raw list, nil where it is none.
func rawList(raw []byte) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func (r *mirror) note(name string, input []byte) {
	var params []schema.HeaderParam
	if bytes.Contains(input, []byte("x-mcp-header")) {
		if compiled, err := schema.CompileInput(input); err == nil {
			params = compiled.Headers()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(params) == 0:
		delete(r.tools, name)
	case len(r.tools) < maxMirrored:
		r.tools[name] = params
	}
}

// set adds the headers of a call.
func (r *mirror) set(header http.Header, m *message) {
	if m.Method != mcp.MethodToolsCall {
		return
	}
	name, _ := m.Params.Text("name")
	r.mu.Lock()
	params := r.tools[name]
	r.mu.Unlock()
	if len(params) == 0 {
		return
	}
	value, err := wire.Decode(m.Params.Get("arguments"))
	args, ok := value.(map[string]any)
	if err != nil || !ok {
		return
	}
	for name, values := range client.Mirror(params, args) {
		header[name] = values
	}
}

// relist reads the tools in the name of the client, which did not, or not
// since they changed. It reports whether it could.
func (l *httpLink) relist(ctx, patience context.Context, m *message) bool {
	meta := []byte(`{`)
	for i, key := range []string{mcp.MetaProtocolVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo} {
		if raw := m.Meta.Get(key); raw != nil {
			if i > 0 {
				meta = append(meta, ',')
			}
			meta = append(append(wire.AppendString(meta, key), ':'), raw...)
		}
	}
	meta = append(meta, '}')
	var cursor []byte
	for range maxPages {
		line := append([]byte(`{"jsonrpc":"2.0","id":"kubectl-mcp","method":"`+mcp.MethodToolsList+`","params":{"_meta":`), meta...)
		if cursor != nil {
			line = wire.AppendField(line, "cursor", cursor)
		}
		list, invalid := read(append(line, "}}"...))
		if invalid != nil {
			return false
		}
		cursor = nil
		f := l.exchangeOnce(ctx, patience, list, l.mirror.reading(func(p packet) {
			if object, err := wire.DecodeObject(p.parts[0].result); err == nil {
				cursor = object.Get("nextCursor")
			}
		}))
		if f != nil {
			return false
		}
		if cursor == nil || string(cursor) == "null" {
			return true
		}
	}
	return true
}
