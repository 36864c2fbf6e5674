// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// strayKey stands where a reference stood that leads nowhere or elsewhere.
const strayKey = "x-espalier-stray-reference"

// maxRefs are followed from one to the next.
const maxRefs = 64

// withoutStrayRefs gives the document as JSON with each reference that leads
// out of it, or to nothing in it, replaced by a mark. ok is false when there
// is none.
func withoutStrayRefs(data []byte) (out []byte, ok bool) {
	tree, err := decode(data)
	if err != nil {
		if tree, err = decodeYAML(data); err != nil {
			return nil, false
		}
	}
	found := false
	var walk func(node any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			if ref, is := node["$ref"].(string); is && !leads(tree, ref) {
				clear(node)
				node[strayKey], found = true, true
			}
			for _, child := range node {
				walk(child)
			}
		case []any:
			for _, child := range node {
				walk(child)
			}
		}
	}
	walk(tree)
	if !found {
		return nil, false
	}
	out, err = json.Marshal(tree)
	return out, err == nil
}

func decodeYAML(data []byte) (any, error) {
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	return plain(tree), nil
}

// plain gives maps the string keys that JSON wants: the status of a response
// is a number in many documents.
func plain(node any) any {
	switch node := node.(type) {
	case map[string]any:
		for key, child := range node {
			node[key] = plain(child)
		}
	case map[any]any:
		out := make(map[string]any, len(node))
		for key, child := range node {
			out[fmt.Sprint(key)] = plain(child)
		}
		return out
	case []any:
		for i, child := range node {
			node[i] = plain(child)
		}
	}
	return node
}

// leads reports whether ref ends at something in tree.
func leads(tree any, ref string) bool {
	for range maxRefs {
		target, ok := follow(tree, ref)
		if !ok {
			return false
		}
		object, _ := target.(map[string]any)
		next, more := object["$ref"].(string)
		if !more {
			return true
		}
		ref = next
	}
	return false
}

// follow gives what a reference within tree names.
func follow(tree any, ref string) (any, bool) {
	fragment, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	if unescaped, err := url.PathUnescape(fragment); err == nil {
		fragment = unescaped
	}
	node := tree
	for part := range strings.SplitSeq(fragment, "/") {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		switch container := node.(type) {
		case map[string]any:
			if node, ok = container[part]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(container) {
				return nil, false
			}
			node = container[i]
		default:
			return nil, false
		}
	}
	return node, true
}
