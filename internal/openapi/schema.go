// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// direction says which way values of a schema go.
type direction bool

const (
	// request: what is read only is left out.
	request direction = false
	// response: what is written only is left out; what may be absent may also
	// be null, and more may come than is declared. APIs promise less than
	// their documents say, and a client refuses an answer that breaks them.
	response direction = true
)

// object is a JSON object, in a schema or any other part of a document.
type object = map[string]any

var (
	// dropped keys mean nothing in JSON Schema, or would give references
	// another base.
	dropped = map[string]bool{
		"xml": true, "externalDocs": true, "discriminator": true, "example": true, "nullable": true, "readOnly": true,
		"writeOnly": true, "allowEmptyValue": true, "$schema": true, "$id": true, "$anchor": true, "$dynamicAnchor": true,
		"$dynamicRef": true, "$comment": true, "$defs": true, "definitions": true, "contentSchema": true,
	}
	verbatim = map[string]bool{"default": true, "enum": true, "const": true, "examples": true, "required": true, "dependentRequired": true}
	// mapped keys hold schemas by name, listed ones a list of them.
	mapped = map[string]bool{"properties": true, "patternProperties": true, "dependentSchemas": true}
	listed = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true, "prefixItems": true}
	nested = map[string]bool{
		"items": true, "not": true, "if": true, "then": true, "else": true, "contains": true, "additionalProperties": true,
		"propertyNames": true, "unevaluatedItems": true, "unevaluatedProperties": true,
	}
	types = map[string]bool{"string": true, "number": true, "integer": true, "boolean": true, "object": true, "array": true, "null": true}
	// notes say nothing of which values are valid.
	notes = map[string]bool{"title": true, "description": true, "default": true, "examples": true, "deprecated": true, "format": true}
)

// maxDepth of a schema within itself, references not followed.
const maxDepth = 100

// conversion makes a JSON Schema of 2020-12 of a schema of a document.
type conversion struct {
	d   *Document
	way direction
	// refs are the defs that the converted schemas name.
	refs map[defKey]bool
	// stray: a reference leads nowhere. deep: it is nested beyond reason.
	stray, deep bool
}

// schema converts one schema.
func (c *conversion) schema(node any, depth int) any {
	in, ok := node.(object)
	if !ok {
		if always, is := node.(bool); is {
			return always
		}
		return true
	}
	if depth > maxDepth {
		c.deep = true
		return true
	}
	if in[strayKey] != nil {
		c.stray = true
		return true
	}
	out := make(object, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		if value, keep := c.keyword(key, in[key], depth); keep {
			out[key] = value
		}
	}
	c.bounds(out)
	c.members(in, out)
	if example, ok := in["example"]; ok && out["examples"] == nil && c.way == request {
		out["examples"] = []any{example}
	}
	out = flat(out)
	if nullable, _ := in["nullable"].(bool); nullable {
		return orNull(out)
	}
	return out
}

func (c *conversion) keyword(key string, value any, depth int) (any, bool) {
	switch {
	case key == "$ref":
		ref, ok := value.(string)
		if !ok {
			return nil, false
		}
		return c.reference(ref)
	case dropped[key], strings.HasPrefix(key, "x-"):
		return nil, false
	case key == "type":
		value = knownTypes(value)
		return value, value != nil
	case c.way == response && (key == "examples" || key == "additionalProperties" && value == false):
		return nil, false
	case mapped[key]:
		return c.byName(value, depth), true
	case listed[key]:
		out := c.list(value, depth)
		return out, len(out) > 0
	case nested[key]:
		return c.schema(value, depth+1), true
	case verbatim[key]:
		return value, true
	}
	switch value.(type) {
	case object, []any:
		// No keyword that is known here: it may hold references.
		return nil, false
	}
	return value, true
}

// byName converts schemas that stand by name.
func (c *conversion) byName(value any, depth int) object {
	members, _ := value.(object)
	out := make(object, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		out[name] = c.schema(members[name], depth+1)
	}
	return out
}

func (c *conversion) list(value any, depth int) []any {
	var out []any
	elements, _ := value.([]any)
	for _, element := range elements {
		out = append(out, c.schema(element, depth+1))
	}
	return out
}

// knownTypes is type without what JSON Schema does not know; nil for nothing.
func knownTypes(value any) any {
	switch value := value.(type) {
	case string:
		if types[value] {
			return value
		}
	case []any:
		var out []any
		for _, element := range value {
			if name, ok := element.(string); ok && types[name] && !slices.Contains(out, element) {
				out = append(out, name)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// bounds makes numbers of the booleans that 3.0 has for exclusive bounds.
func (c *conversion) bounds(out object) {
	for exclusive, inclusive := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		flag, is := out[exclusive].(bool)
		if !is {
			continue
		}
		delete(out, exclusive)
		if bound, ok := out[inclusive]; ok && flag {
			out[exclusive] = bound
			delete(out, inclusive)
		}
	}
}

// members leaves out the properties that do not go this way, and loosens those
// of answers.
func (c *conversion) members(in, out object) {
	properties, ok := out["properties"].(object)
	if !ok {
		return
	}
	declared, _ := in["properties"].(object)
	required := map[string]bool{}
	list, _ := in["required"].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			required[text] = true
		}
	}
	for name, property := range declared {
		switch {
		case c.against(property):
			delete(properties, name)
			delete(required, name)
		case c.way == response && !required[name]:
			properties[name] = orNull(properties[name])
		}
	}
	delete(out, "required")
	if len(required) > 0 {
		names := make([]any, 0, len(required))
		for _, name := range slices.Sorted(maps.Keys(required)) {
			names = append(names, name)
		}
		out["required"] = names
	}
}

// against reports whether a property goes the other way only.
func (c *conversion) against(property any) bool {
	key := "readOnly"
	if c.way == response {
		key = "writeOnly"
	}
	for range maxRefs {
		node, _ := property.(object)
		if flag, _ := node[key].(bool); flag {
			return true
		}
		ref, ok := node["$ref"].(string)
		if !ok {
			return false
		}
		if property, ok = follow(c.d.tree, ref); !ok {
			return false
		}
	}
	return false
}

// flat makes one schema of an allOf around a single one that only adds notes
// to it, as 3.0 has to write it.
func flat(out object) object {
	list, _ := out["allOf"].([]any)
	if len(list) != 1 {
		return out
	}
	inner, ok := list[0].(object)
	if !ok {
		return out
	}
	for key := range out {
		if key != "allOf" && !notes[key] {
			return out
		}
	}
	merged := maps.Clone(inner)
	for key, value := range out {
		if key != "allOf" {
			merged[key] = value
		}
	}
	return merged
}

// orNull lets null pass too.
func orNull(node any) any {
	in, ok := node.(object)
	if !ok || len(in) == 0 {
		return node
	}
	const null = "null"
	if list, _ := in["anyOf"].([]any); slices.ContainsFunc(list, func(e any) bool { return reflect.DeepEqual(e, object{"type": null}) }) && adds(in, object{"anyOf": list}) {
		return in
	}
	kinds := kindsOf(in)
	if kinds == nil || in["const"] != nil {
		for key := range in {
			if !notes[key] || key == "format" {
				return object{"anyOf": []any{in, object{"type": null}}}
			}
		}
		return in // Nothing but notes: it lets all pass.
	}
	out := maps.Clone(in)
	if !slices.Contains(kinds, any(null)) {
		out["type"] = append(slices.Clone(kinds), null)
	}
	if values, ok := out["enum"].([]any); ok && !slices.Contains(values, nil) {
		out["enum"] = append(slices.Clone(values), nil)
	}
	for _, key := range []string{"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else"} {
		if _, ok := in[key]; ok { // It may refuse null by itself.
			return object{"anyOf": []any{in, object{"type": null}}}
		}
	}
	return out
}

func kindsOf(in object) []any {
	switch kind := in["type"].(type) {
	case string:
		return []any{kind}
	case []any:
		return kind
	}
	return nil
}
