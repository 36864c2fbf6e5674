// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// Bounds of all lists together.
const (
	maxPages     = 200
	maxEntries   = 20000
	maxListBytes = 64 << 20
)

// Entry is one listed tool, resource, template or prompt, as the server wrote
// it.
type Entry struct {
	// ID is its identity in its list: the name of a tool or prompt, the URI of
	// a resource, the URI template of a template.
	ID string
	// Name is the same of tools and prompts.
	Name       string
	Definition json.RawMessage
}

// Lists is all that a server lists.
type Lists struct {
	Tools, Resources, Templates, Prompts []Entry
	// Failed are the methods of lists, of all but tools, that the server
	// answered with an error: what it lists there is unknown.
	Failed []string
	// TTL is for how long the server says that all of it holds; nil when it
	// does not.
	TTL *time.Duration
	// Private: the server says that it is for this credential only.
	Private bool
}

// Abilities are what a server declares.
type Abilities struct {
	Tools, Resources, Prompts, Completions bool
	// ToolsChanged, ResourcesChanged and PromptsChanged: it tells of changes
	// of that list.
	ToolsChanged, ResourcesChanged, PromptsChanged bool
	// Subscribe: it tells of changes of single resources.
	Subscribe bool
	// Logging: it has log messages to tell.
	Logging bool
}

// ListChanged reports whether the server tells of changes of every list that
// it has.
func (a Abilities) ListChanged() bool {
	return (!a.Tools || a.ToolsChanged) && (!a.Resources || a.ResourcesChanged) && (!a.Prompts || a.PromptsChanged)
}

// Tells reports whether the server tells of anything by itself.
func (a Abilities) Tells() bool {
	return a.ToolsChanged || a.ResourcesChanged || a.PromptsChanged || a.Subscribe
}

// Lists reads all lists that the server declares. One that is too long, or
// whose cursor comes back, ends at what was read.
func (s *Session) Lists(ctx context.Context) (*Lists, error) {
	lists := &Lists{TTL: s.ttl, Private: s.private}
	r := &reader{session: s, lists: lists}
	for _, l := range []struct {
		declared        bool
		method, key, id string
		into            *[]Entry
	}{
		{s.abilities.Tools, mcp.MethodToolsList, "tools", "name", &lists.Tools},
		{s.abilities.Resources, mcp.MethodResourcesList, "resources", "uri", &lists.Resources},
		{s.abilities.Resources, mcp.MethodResourceTemplates, "resourceTemplates", "uriTemplate", &lists.Templates},
		{s.abilities.Prompts, mcp.MethodPromptsList, "prompts", "name", &lists.Prompts},
	} {
		if !l.declared {
			continue
		}
		entries, err := r.read(ctx, l.method, l.key, l.id)
		var rpc *RPCError
		switch {
		case err == nil:
			*l.into = entries
		case l.method == mcp.MethodToolsList || !errors.As(err, &rpc):
			return nil, listError(err)
		case rpc.Code != mcp.CodeMethodNotFound: // Who does not know templates has none.
			lists.Failed = append(lists.Failed, l.method)
		}
	}
	return lists, nil
}

// reader reads lists within bounds that they share.
type reader struct {
	session    *Session
	lists      *Lists
	size, many int
}

// read reads the pages of one list.
func (r *reader) read(ctx context.Context, method, key, id string) ([]Entry, error) {
	var out []Entry
	cursors := map[string]bool{}
	ids := map[string]bool{}
	cursor := ""
	for range maxPages {
		m := &message{id: r.session.next(), method: method}
		if cursor != "" {
			m.params = append([]byte(`"cursor":`), wire.AppendString(nil, cursor)...)
		}
		raw, err := r.session.carrier.request(ctx, m)
		err = inPhase(err, PhaseList)
		if err != nil {
			return nil, err
		}
		page, err := wire.DecodeObject(raw)
		if err != nil {
			return nil, &Error{Reason: NotMCP, Cause: err}
		}
		entries, ok := elements(page.Get(key))
		if !ok {
			return nil, &Error{Reason: ListFailed}
		}
		for _, raw := range entries {
			if entry, ok := entryOf(raw, id); ok && !ids[entry.ID] && r.many < maxEntries {
				ids[entry.ID] = true
				r.many++
				out = append(out, entry)
			}
		}
		r.lists.limit(page)
		cursor, _ = page.Text("nextCursor")
		r.size += len(raw)
		if cursor == "" || cursors[cursor] || r.size > maxListBytes || r.many >= maxEntries {
			return out, nil
		}
		cursors[cursor] = true
	}
	return out, nil
}

// entryOf reads an entry that is identified by the member id.
func entryOf(raw []byte, id string) (Entry, bool) {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return Entry{}, false
	}
	e := Entry{Definition: raw}
	e.ID, _ = object.Text(id)
	e.Name, _ = object.Text("name")
	return e, e.ID != ""
}

// listError: a server whose list fails with a JSON-RPC error has none.
func listError(err error) error {
	if isRPC(err) {
		return &Error{Reason: ListFailed, Cause: err}
	}
	return err
}

// limit takes the shortest ttl of all pages, and private if one is.
func (l *Lists) limit(page wire.Object) {
	ttl, private := Caching(page)
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
