// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// typeNames are the types of JSON Schema. A schema of any other type would
// accept no value at all, and clients refuse the whole list for it.
var typeNames = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// Where subschemas stand.
var (
	schemaKeys = []string{
		"additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
	}
	schemaListKeys = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	schemaMapKeys  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

// checkTypes refuses a type that JSON Schema does not know.
func checkTypes(node any, path string, depth int) error {
	object, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	if depth > maxSchemaDepth {
		return errTooDeep
	}
	if err := checkType(object["type"], path); err != nil {
		return err
	}
	for _, key := range schemaKeys {
		if err := checkTypes(object[key], path+"/"+key, depth+1); err != nil {
			return err
		}
	}
	for _, key := range schemaListKeys {
		list, _ := object[key].([]any)
		for i, child := range list {
			if err := checkTypes(child, path+"/"+key+"/"+strconv.Itoa(i), depth+1); err != nil {
				return err
			}
		}
	}
	for _, key := range schemaMapKeys {
		children, _ := object[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(children)) {
			if err := checkTypes(children[name], path+"/"+key+"/"+name, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkType(value any, path string) error {
	names := []any{value}
	if list, ok := value.([]any); ok {
		names = list
	}
	for _, name := range names {
		if s, ok := name.(string); ok && !slices.Contains(typeNames, s) {
			return bounded(fmt.Sprintf("%q at %q is no type of JSON Schema", s, "#"+path))
		}
	}
	return nil
}
