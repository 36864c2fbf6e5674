// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import "math"

// numbers says which properties are declared "number" and which "integer".
// JSON writes both alike (3), CEL does not take one for the other.
type numbers struct {
	kind       string
	properties map[string]*numbers
	items      *numbers
}

func numbersOf(node map[string]any) *numbers {
	n := &numbers{}
	switch kind, _ := node["type"].(string); kind {
	case "number", "integer":
		n.kind = kind
		return n
	}
	properties, _ := node["properties"].(map[string]any)
	for name, child := range properties {
		if m, ok := child.(map[string]any); ok {
			if c := numbersOf(m); c != nil {
				if n.properties == nil {
					n.properties = map[string]*numbers{}
				}
				n.properties[name] = c
			}
		}
	}
	if items, ok := node["items"].(map[string]any); ok {
		n.items = numbersOf(items)
	}
	if n.properties == nil && n.items == nil {
		return nil
	}
	return n
}

// Coerce gives numbers in value, a decoded JSON object, the Go type of their
// declaration, in place: float64 for "number", int64 for "integer". Values
// that are declared as neither stay as they are.
func (s *Schema) Coerce(value map[string]any) {
	if s.numbers != nil {
		s.numbers.apply(value)
	}
}

func (n *numbers) apply(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, child := range n.properties {
			if current, ok := v[name]; ok {
				v[name] = child.apply(current)
			}
		}
	case []any:
		if n.items != nil {
			for i := range v {
				v[i] = n.items.apply(v[i])
			}
		}
	case int64:
		if n.kind == "number" {
			return float64(v)
		}
	case uint64:
		if n.kind == "number" {
			return float64(v)
		}
	case float64:
		if n.kind == "integer" && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return value
}
