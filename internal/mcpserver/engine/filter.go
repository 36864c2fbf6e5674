// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
)

// maxWatched is how many resources one stream may subscribe to; what is more
// is not acknowledged.
const maxWatched = 256

// filter is what a client wants to hear of. Changes of any list are told,
// also of one that has no entries yet.
type filter struct {
	tools, resources, prompts bool
	// uris that the client subscribes to, each once.
	uris []string
}

func listenFilter(m *wire.Message) (filter, *wire.Error) {
	invalid := func(text string) (filter, *wire.Error) {
		return filter{}, &wire.Error{Code: mcp.CodeInvalidParams, Message: text}
	}
	wanted, err := wire.DecodeObject(m.Params.Get("notifications"))
	if err != nil {
		return invalid("notifications must be an object")
	}
	is := func(key string) bool { return string(wanted.Get(key)) == "true" }
	f := filter{tools: is("toolsListChanged"), resources: is("resourcesListChanged"), prompts: is("promptsListChanged")}
	raw := wanted.Get("resourceSubscriptions")
	if raw == nil || string(raw) == "null" {
		return f, nil
	}
	var uris []string
	if json.Unmarshal(raw, &uris) != nil {
		return invalid("resourceSubscriptions must be a list of strings")
	}
	seen := map[string]bool{}
	for _, uri := range uris {
		if !seen[uri] {
			seen[uri] = true
			f.uris = append(f.uris, uri)
		}
	}
	return f, nil
}

// watch is one resource that a client subscribed to.
type watch struct {
	uri     string
	version string
}

// watch gives those of the subscribed resources that the caller sees and is
// told of, with the version that they have now.
func (f filter) watch(ctx context.Context, r *Request, follow *following) []watch {
	var told []string
	for _, uri := range f.uris {
		if len(told) < maxWatched && follow.set(ctx, r, uri) {
			told = append(told, uri)
		}
	}
	follow.wait(ctx)
	var out []watch
	for _, uri := range told {
		if version := versionOf(ctx, r, uri); version != "" {
			out = append(out, watch{uri, version})
		}
	}
	return out
}

// moved reports, once, that the content is another.
func (w *watch) moved(ctx context.Context, r *Request) bool {
	now := versionOf(ctx, r, w.uri)
	if now == w.version {
		return false
	}
	w.version = now
	return true
}

// acknowledgement says what of the filter is told.
func (f filter) acknowledgement(tag []byte, watched []watch) []byte {
	told := []byte{'{'}
	add := func(key string, raw []byte) {
		if len(told) > 1 {
			told = append(told, ',')
		}
		told = wire.AppendString(told, key)
		told = append(told, ':')
		told = append(told, raw...)
	}
	for _, list := range []struct {
		wanted bool
		key    string
	}{{f.tools, "toolsListChanged"}, {f.resources, "resourcesListChanged"}, {f.prompts, "promptsListChanged"}} {
		if list.wanted {
			add(list.key, []byte("true"))
		}
	}
	if len(watched) > 0 {
		uris := []byte{'['}
		for i, w := range watched {
			if i > 0 {
				uris = append(uris, ',')
			}
			uris = wire.AppendString(uris, w.uri)
		}
		add("resourceSubscriptions", append(uris, ']'))
	}
	out := []byte(`{"jsonrpc":"2.0","method":"` + mcp.NotificationAcknowledged + `","params":{"_meta":`)
	out = append(out, tag...)
	out = append(out, `},"notifications":`...)
	out = append(out, told...)
	return append(out, "}}}"...)
}
