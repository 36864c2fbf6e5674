// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"encoding/json"
	"maps"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// needsTask reports whether a tool can be called as a task only, which this
// server cannot do.
func needsTask(definition wire.Object) bool {
	execution, err := wire.DecodeObject(definition.Get("execution"))
	if err != nil {
		return false
	}
	support, _ := execution.Text("taskSupport")
	return support == "required"
}

// adapted gives a definition its final name and what an override says. All
// else stays as the upstream wrote it.
func adapted(definition wire.Object, upstream, name string, override *serverconfig.Override) wire.Object {
	out := described(set(definition, "name", text(name)), upstream)
	if override == nil {
		return out
	}
	if override.Title != "" {
		out = set(out, "title", text(override.Title))
	}
	if override.Description != "" {
		out = set(out, "description", text(override.Description))
	}
	if len(override.Annotations) > 0 {
		out = set(out, "annotations", override.Annotations)
	}
	return out
}

// described says where an entry without a description comes from.
func described(definition wire.Object, upstream string) wire.Object {
	if description, _ := definition.Text("description"); description != "" {
		return definition
	}
	return set(definition, "description", text("(from upstream "+upstream+")"))
}

func text(s string) []byte { return wire.AppendString(nil, s) }

// set gives object with another value at key; a new key comes last.
func set(object wire.Object, key string, raw []byte) wire.Object {
	out := make(wire.Object, 0, len(object)+1)
	found := false
	for _, field := range object {
		if field.Key == key {
			field.Raw, found = raw, true
		}
		out = append(out, field)
	}
	if !found {
		out = append(out, wire.Field{Key: key, Raw: raw})
	}
	return out
}

func encode(object wire.Object) json.RawMessage {
	out := []byte{'{'}
	for i, field := range object {
		if i > 0 {
			out = append(out, ',')
		}
		out = wire.AppendString(out, field.Key)
		out = append(out, ':')
		out = append(out, field.Raw...)
	}
	return append(out, '}')
}

// metadata of an upstream's tool: the override's before the upstream's.
func metadata(u *serverconfig.Upstream, override *serverconfig.Override) map[string]string {
	if override == nil || len(override.Metadata) == 0 {
		return u.Metadata
	}
	out := maps.Clone(u.Metadata)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, override.Metadata)
	return out
}
