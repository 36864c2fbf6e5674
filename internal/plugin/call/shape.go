// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxRefs is how many references in a row are followed within a schema.
const maxRefs = 16

// shape is a part of a tool's inputSchema, as far as it says how an argument is
// written. Nothing is checked by it but what a person typed.
type shape struct {
	root, node map[string]any
}

func shapeOf(raw json.RawMessage) shape {
	var root map[string]any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if decoder.Decode(&root) != nil {
		root = nil
	}
	return shape{root, root}.resolved()
}

// resolved follows references within the document.
func (s shape) resolved() shape {
	for range maxRefs {
		ref, ok := s.node["$ref"].(string)
		if !ok {
			return s
		}
		pointer, ok := strings.CutPrefix(ref, "#")
		if !ok {
			return shape{s.root, nil}
		}
		var at any = s.root
		for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
			if part == "" {
				continue
			}
			object, _ := at.(map[string]any)
			at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		node, _ := at.(map[string]any)
		s.node = node
	}
	return shape{s.root, nil}
}

// maxParts is how many parts of a composition are looked at.
const maxParts = 256

// parts are s itself and what it is composed of, the outer ones first.
func (s shape) parts() []shape {
	out := []shape{s}
	for at := 0; at < len(out); at++ {
		for _, key := range []string{"allOf", "anyOf", "oneOf"} {
			list, _ := out[at].node[key].([]any)
			for _, one := range list {
				if node, ok := one.(map[string]any); ok && len(out) < maxParts {
					out = append(out, shape{s.root, node}.resolved())
				}
			}
		}
	}
	return out
}

// property gives the shape of a property; ok is false where none is declared.
func (s shape) property(name string) (shape, bool) {
	for _, part := range s.parts() {
		properties, _ := part.node["properties"].(map[string]any)
		if raw, ok := properties[name]; ok {
			node, _ := raw.(map[string]any)
			return shape{s.root, node}.resolved(), true
		}
	}
	return shape{root: s.root}, false
}

// names of all properties, sorted.
func (s shape) names() []string {
	seen := map[string]bool{}
	for _, part := range s.parts() {
		properties, _ := part.node["properties"].(map[string]any)
		for name := range properties {
			seen[name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// required are the names that must be given, in the order of the schema.
func (s shape) required() []string {
	var out []string
	list, _ := s.node["required"].([]any)
	for _, one := range list {
		if name, ok := one.(string); ok {
			out = append(out, name)
		}
	}
	return out
}

// open reports whether names that are not declared are meant to be given: the
// schema declares none at all, or opens itself.
func (s shape) open() bool {
	for _, part := range s.parts() {
		switch more := part.node["additionalProperties"].(type) {
		case bool:
			return more
		case map[string]any:
			return true
		}
		if part.node["patternProperties"] != nil {
			return true
		}
	}
	return len(s.names()) == 0
}

// more is the shape of properties that are not declared.
func (s shape) more() shape {
	for _, part := range s.parts() {
		if node, ok := part.node["additionalProperties"].(map[string]any); ok {
			return shape{s.root, node}.resolved()
		}
	}
	return shape{root: s.root}
}

// items is the shape of an array's elements.
func (s shape) items() shape {
	for _, part := range s.parts() {
		if node, ok := part.node["items"].(map[string]any); ok {
			return shape{s.root, node}.resolved()
		}
	}
	return shape{root: s.root}
}

// types that a value may have; none for any.
func (s shape) types() []string {
	var out []string
	for _, part := range s.parts() {
		switch t := part.node["type"].(type) {
		case string:
			out = append(out, t)
		case []any:
			for _, one := range t {
				if text, ok := one.(string); ok {
					out = append(out, text)
				}
			}
		}
	}
	if out == nil {
		for _, value := range s.choices() {
			if _, ok := value.(string); ok {
				out = append(out, "string")
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (s shape) is(kind string) bool { return slices.Contains(s.types(), kind) }

// choices are all values that are allowed, nil where that is not said.
func (s shape) choices() []any {
	var out []any
	for _, part := range s.parts() {
		if list, ok := part.node["enum"].([]any); ok {
			out = append(out, list...)
		}
		if value, ok := part.node["const"]; ok {
			out = append(out, value)
		}
	}
	return out
}

// expected says in words what a value is to be.
func (s shape) expected() string {
	if choices := s.choices(); len(choices) > 0 {
		words := make([]string, 0, len(choices))
		for _, c := range choices {
			words = append(words, fmt.Sprint(c))
		}
		return "one of " + strings.Join(words, ", ")
	}
	types := s.types()
	if len(types) == 0 {
		return "any value"
	}
	for i, t := range types {
		types[i] = map[string]string{
			"integer": "an integer", "number": "a number", "boolean": "true or false", "string": "text", "null": "null",
			"array": "a list", "object": "an object",
		}[t]
	}
	return strings.Join(types, " or ")
}

// description in the words of the schema.
func (s shape) description() string {
	text, _ := s.node["description"].(string)
	return text
}
