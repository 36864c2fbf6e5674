// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Bounds of a list.
const (
	maxPages     = 200
	maxTools     = 20000
	maxListBytes = 64 << 20
)

// Tool is one listed tool, as the server wrote it.
type Tool struct {
	Name       string
	Definition json.RawMessage
}

// List is a server's list of tools.
type List struct {
	Tools []Tool
	// TTL is for how long the server says that it holds; nil when it does not.
	TTL *time.Duration
	// Private: the server says that it is for this credential only.
	Private bool
}

// Tools reads the whole list. A list that is too long, or whose cursor comes
// back, ends at what was read.
func (s *Session) Tools(ctx context.Context) (*List, error) {
	list := &List{TTL: s.ttl, Private: s.private}
	if !s.tools {
		return list, nil
	}
	seen := map[string]bool{}
	names := map[string]bool{}
	size, cursor := 0, ""
	for range maxPages {
		m := &message{id: s.next(), method: mcp.MethodToolsList}
		if cursor != "" {
			m.params = append([]byte(`"cursor":`), wire.AppendString(nil, cursor)...)
		}
		raw, err := s.carrier.request(ctx, m)
		if err != nil {
			return nil, listError(err)
		}
		page, err := wire.DecodeObject(raw)
		if err != nil {
			return nil, &Error{Reason: NotMCP, Cause: err}
		}
		entries, ok := elements(page.Get("tools"))
		if !ok {
			return nil, &Error{Reason: ListFailed}
		}
		for _, entry := range entries {
			list.add(entry, names)
		}
		list.limit(page)
		cursor, _ = page.Text("nextCursor")
		size += len(raw)
		if cursor == "" || seen[cursor] || size > maxListBytes || len(list.Tools) >= maxTools {
			return list, nil
		}
		seen[cursor] = true
	}
	return list, nil
}

// listError: a server whose list fails with a JSON-RPC error has none.
func listError(err error) error {
	if isRPC(err) {
		return &Error{Reason: ListFailed, Cause: err}
	}
	return err
}

// add takes the first tool of each name.
func (l *List) add(entry []byte, names map[string]bool) {
	object, err := wire.DecodeObject(entry)
	if err != nil {
		return
	}
	name, ok := object.Text("name")
	if !ok || name == "" || names[name] || len(l.Tools) >= maxTools {
		return
	}
	names[name] = true
	l.Tools = append(l.Tools, Tool{Name: name, Definition: entry})
}

// limit takes the shortest ttl of all pages, and private if one is.
func (l *List) limit(page wire.Object) {
	ttl, private := caching(page)
	if ttl != nil && (l.TTL == nil || *ttl < *l.TTL) {
		l.TTL = ttl
	}
	l.Private = l.Private || private
}

// elements of a raw array.
func elements(raw []byte) ([]json.RawMessage, bool) {
	var out []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &out) != nil {
		return nil, false
	}
	return out, true
}
