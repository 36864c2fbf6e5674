// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// defKey names a schema that others refer to.
type defKey struct {
	ref string
	way direction
}

// definition is such a schema, converted once for all tools.
type definition struct {
	name   string
	schema any
	// refs of it to others.
	refs        map[defKey]bool
	stray, deep bool
}

const defsPrefix = "#/$defs/"

// reference converts $ref. Its target is converted by convert, not within: a
// chain of references can be as long as the document.
func (c *conversion) reference(ref string) (any, bool) {
	key := defKey{ref: c.d.final(ref), way: c.way}
	if key.ref == "" {
		c.stray = true
		return nil, false
	}
	def := c.d.defs[key]
	if def == nil {
		def = &definition{name: c.d.defName(key)}
		c.d.defs[key] = def
		c.d.open = append(c.d.open, key)
	}
	c.refs[key] = true
	return defsPrefix + def.name, true
}

// convert converts all definitions that are named and not converted yet.
func (d *Document) convert() {
	for len(d.open) > 0 {
		key := d.open[len(d.open)-1]
		d.open = d.open[:len(d.open)-1]
		target, _ := follow(d.tree, key.ref)
		inner := &conversion{d: d, way: key.way, refs: map[defKey]bool{}}
		def := d.defs[key]
		def.schema = inner.schema(target, 0)
		def.refs, def.stray, def.deep = inner.refs, inner.stray, inner.deep
	}
}

// final follows references that lead to nothing but another one. It is empty
// when they lead nowhere, or in a circle.
func (d *Document) final(ref string) string {
	for range maxRefs {
		target, ok := follow(d.tree, ref)
		if !ok {
			return ""
		}
		node, _ := target.(object)
		next, ok := node["$ref"].(string)
		if !ok || len(node) > 1 && !onlyNotes(node) {
			return ref
		}
		ref = next
	}
	return ""
}

// adds reports whether rest says no more than inner, but for notes.
func adds(rest, inner object) bool {
	for key, value := range rest {
		if !notes[key] && !reflect.DeepEqual(inner[key], value) {
			return false
		}
	}
	return true
}

func onlyNotes(node object) bool {
	for key := range node {
		if key != "$ref" && !notes[key] {
			return false
		}
	}
	return true
}

// defName gives the name of a definition: the last part of its reference, and a
// number where that is taken.
func (d *Document) defName(key defKey) string {
	base := clean(key.ref[strings.LastIndexByte(key.ref, '/')+1:])
	if base == "" {
		base = "schema"
	}
	name := base
	for n := 2; ; n++ {
		// The two directions never meet in one schema.
		id := name
		if key.way == response {
			id += "\x00"
		}
		if _, taken := d.names[id]; !taken {
			d.names[id] = key
			return name
		}
		name = base + "_" + strconv.Itoa(n)
	}
}

// closure are all definitions that refs lead to.
func (d *Document) closure(refs map[defKey]bool) map[defKey]*definition {
	d.convert()
	out := map[defKey]*definition{}
	open := slices.Collect(maps.Keys(refs))
	for len(open) > 0 {
		key := open[len(open)-1]
		open = open[:len(open)-1]
		if out[key] == nil {
			out[key] = d.defs[key]
			open = slices.AppendSeq(open, maps.Keys(d.defs[key].refs))
		}
	}
	return out
}

// maxInline is how many values a schema may hold after its references were
// replaced by what they name. Not every client follows references, so small
// schemas have none.
const maxInline = 300

// withDefs puts what root refers to into it: in place where that stays small
// and ends, under $defs else.
func withDefs(root object, defs map[defKey]*definition) object {
	if len(defs) == 0 {
		return root
	}
	byName := make(object, len(defs))
	for _, def := range defs {
		byName[def.name] = def.schema
	}
	in := &inliner{defs: byName, left: maxInline, open: map[string]bool{}}
	if out, ok := in.value(root).(object); ok && in.left > 0 {
		return out
	}
	out := maps.Clone(root)
	out["$defs"] = byName
	return out
}

type inliner struct {
	defs map[string]any
	// left of the values; 0 when it cannot be done.
	left int
	// open are the definitions that are being put in.
	open map[string]bool
}

// value puts definitions into one schema.
func (in *inliner) value(node any) any {
	if in.left--; in.left <= 0 {
		in.left = 0
		return true
	}
	schema, ok := node.(object)
	if !ok {
		return node
	}
	out := make(object, len(schema))
	for key, child := range schema {
		switch {
		case key == "$ref":
		case mapped[key]:
			members, _ := child.(object)
			inner := make(object, len(members))
			for name, member := range members {
				inner[name] = in.value(member)
			}
			out[key] = inner
		case listed[key]:
			elements, _ := child.([]any)
			inner := make([]any, 0, len(elements))
			for _, element := range elements {
				inner = append(inner, in.value(element))
			}
			out[key] = inner
		case nested[key]:
			out[key] = in.value(child)
		default:
			out[key] = child
		}
	}
	if ref, ok := schema["$ref"].(string); ok {
		return in.reference(out, strings.TrimPrefix(ref, defsPrefix))
	}
	return out
}

// reference puts a definition in place of a reference, beside whose the
// keywords of rest stood.
func (in *inliner) reference(rest object, name string) any {
	if in.open[name] {
		in.left = 0
		return true
	}
	in.open[name] = true
	defer delete(in.open, name)
	target := in.value(in.defs[name])
	if len(rest) == 0 {
		return target
	}
	inner, ok := target.(object)
	if !ok || !adds(rest, inner) {
		all, _ := rest["allOf"].([]any)
		rest["allOf"] = append([]any{target}, all...)
		return rest
	}
	out := maps.Clone(inner)
	maps.Copy(out, rest)
	return out
}
