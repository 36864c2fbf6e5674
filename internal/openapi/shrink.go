// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import "maps"

// terse leaves all notes out of the definitions of a schema; those at its top
// stay.
func terse(root object) object {
	defs, ok := root["$defs"].(object)
	if !ok {
		return root
	}
	out := maps.Clone(root)
	short := make(object, len(defs))
	for name, def := range defs {
		short[name] = bare(def)
	}
	out["$defs"] = short
	return out
}

// bare is a schema without notes.
func bare(node any) any {
	in, ok := node.(object)
	if !ok {
		return node
	}
	out := make(object, len(in))
	for key, child := range in {
		switch {
		case notes[key] && key != "format":
		case mapped[key]:
			members, _ := child.(object)
			inner := make(object, len(members))
			for name, member := range members {
				inner[name] = bare(member)
			}
			out[key] = inner
		case listed[key]:
			elements, _ := child.([]any)
			inner := make([]any, 0, len(elements))
			for _, element := range elements {
				inner = append(inner, bare(element))
			}
			out[key] = inner
		case nested[key]:
			out[key] = bare(child)
		default:
			out[key] = child
		}
	}
	return out
}

// outline is what remains of a schema that is too large: its type and
// description.
func outline(node any, defs map[defKey]*definition) any {
	in, ok := node.(object)
	if !ok {
		return node
	}
	out := object{}
	if ref, ok := in["$ref"].(string); ok {
		for _, def := range defs {
			if target, ok := def.schema.(object); ok && defsPrefix+def.name == ref {
				copyKeys(out, target, "type", "description", "title")
			}
		}
	} else if raw, err := encode(in); err == nil && len(raw) < 4<<10 && !refers(in) {
		return in
	}
	copyKeys(out, in, "type", "description", "title")
	return out
}

func copyKeys(to, from object, keys ...string) {
	for _, key := range keys {
		if value, ok := from[key]; ok {
			to[key] = value
		}
	}
}

// refers reports whether a schema has a reference anywhere.
func refers(node any) bool {
	switch node := node.(type) {
	case object:
		if _, ok := node["$ref"].(string); ok {
			return true
		}
		for _, child := range node {
			if refers(child) {
				return true
			}
		}
	case []any:
		for _, child := range node {
			if refers(child) {
				return true
			}
		}
	}
	return false
}
