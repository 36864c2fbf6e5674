// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxExpansion bounds how many subschemas may apply to one and the same value.
const maxExpansion = 20_000

// ErrExpansion is what the error of a schema is that would never be done with
// one value, or not in reasonable time. It harms whoever applies it.
var ErrExpansion = errors.New("the schema expands without bound")

type expansionError struct{ error }

// Is implements errors.Is.
func (e *expansionError) Is(target error) bool { return target == ErrExpansion }
func (e *expansionError) Unwrap() error        { return e.error }

// checkExpansion refuses a schema whose application to one value would never
// end ({"$ref": "#"}), which overflows the stack and cannot be recovered from,
// or would take exponential time (a ladder of anyOf over $refs).
func checkExpansion(root any) error {
	e := &expansion{root: root, ids: map[string]any{}, anchors: map[string][]any{}, state: map[string]int{}}
	e.index(root, 0)
	var failure error
	e.each(root, "", 0, func(node map[string]any, path string) {
		if failure == nil {
			_, failure = e.measure(node, path, 0)
		}
	})
	return failure
}

type expansion struct {
	root    any
	ids     map[string]any
	anchors map[string][]any
	// state by node identity: 0 unknown, -1 in progress, else its expansion.
	state map[string]int
}

const maxSchemaDepth = 200

var errTooDeep = errors.New("the schema is nested too deeply")

// index collects what references may name.
func (e *expansion) index(node any, depth int) {
	if depth > maxSchemaDepth {
		return
	}
	switch node := node.(type) {
	case map[string]any:
		if id, ok := node["$id"].(string); ok {
			e.ids[strings.TrimSuffix(id, "#")] = node
			if strings.HasPrefix(id, "#") {
				e.anchors[id[1:]] = append(e.anchors[id[1:]], node)
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := node[key].(string); ok {
				e.anchors[name] = append(e.anchors[name], node)
			}
		}
		for _, child := range node {
			e.index(child, depth+1)
		}
	case []any:
		for _, child := range node {
			e.index(child, depth+1)
		}
	}
}

// each visits every object of the document, schemas and others alike; taking
// an example for a schema does no harm here.
func (e *expansion) each(node any, path string, depth int, f func(map[string]any, string)) {
	if depth > maxSchemaDepth {
		return
	}
	switch node := node.(type) {
	case map[string]any:
		f(node, path)
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if key != "enum" && key != "const" && key != "default" && key != "examples" {
				e.each(node[key], path+"/"+key, depth+1, f)
			}
		}
	case []any:
		for i, child := range node {
			e.each(child, path+"/"+strconv.Itoa(i), depth+1, f)
		}
	}
}

// measure counts the subschemas that apply in place with node.
func (e *expansion) measure(node map[string]any, path string, depth int) (int, error) {
	if depth > maxSchemaDepth {
		return 0, errTooDeep
	}
	key := fmt.Sprintf("%p", node)
	switch known := e.state[key]; {
	case known < 0:
		return 0, fmt.Errorf("the schema refers to itself without end at %.200q", "#"+path)
	case known > 0:
		return known, nil
	}
	e.state[key] = -1
	total := 1
	for _, child := range e.inPlace(node) {
		n, err := e.measure(child, path, depth+1)
		if err != nil {
			return 0, err
		}
		if total += n; total > maxExpansion {
			return 0, fmt.Errorf("more than %d subschemas apply to one value", maxExpansion)
		}
	}
	e.state[key] = total
	return total, nil
}

// inPlace are the subschemas that apply to the very value node applies to.
func (e *expansion) inPlace(node map[string]any) []map[string]any {
	var out []map[string]any
	add := func(child any) {
		if m, ok := child.(map[string]any); ok {
			out = append(out, m)
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		add(node[key])
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := node[key].([]any); ok {
			for _, child := range list {
				add(child)
			}
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		if m, ok := node[key].(map[string]any); ok {
			for _, child := range m {
				add(child)
			}
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := node[key].(string); ok {
			for _, target := range e.targets(ref) {
				add(target)
			}
		}
	}
	return out
}

// targets gives what a reference may name. A base that is no known $id counts
// as the root: too many edges refuse at worst an odd schema, too few would let
// an endless one pass.
func (e *expansion) targets(ref string) []any {
	base, fragment, _ := strings.Cut(ref, "#")
	start := e.root
	for id, node := range e.ids {
		if base != "" && (id == base || strings.HasSuffix(id, "/"+base)) {
			start = node
		}
	}
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	if fragment == "" {
		return []any{start}
	}
	if !strings.HasPrefix(fragment, "/") {
		return e.anchors[fragment]
	}
	return []any{pointer(start, fragment)}
}

func pointer(node any, path string) any {
	for part := range strings.SplitSeq(path[1:], "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch container := node.(type) {
		case map[string]any:
			node = container[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(container) {
				return nil
			}
			node = container[i]
		default:
			return nil
		}
	}
	return node
}
