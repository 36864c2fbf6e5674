// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// writeSchema writes the JSON schema of the values.
func writeSchema(file string, values *value) error {
	schema := schemaOf(values)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["title"] = "Values of the chart espalier"
	// Helm hands it to every chart that is part of another.
	schema["properties"].(map[string]any)["global"] = map[string]any{"type": "object"}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(schema); err != nil {
		return err
	}
	return write(file, out.String())
}

// schemaOf allows of a group what values.yaml names, so that a misspelt value
// is refused, and of a value the type of its default.
func schemaOf(v *value) map[string]any {
	if !v.group() {
		schema := map[string]any{"type": typeOf(v.fallback), "default": v.fallback, "description": v.description}
		for key, part := range v.schema {
			schema[key] = part
		}
		return schema
	}
	properties := map[string]any{}
	for _, member := range v.members {
		properties[member.name] = schemaOf(member)
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

func typeOf(v any) string {
	switch v.(type) {
	case bool:
		return "boolean"
	case int:
		return "integer"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	panic(fmt.Sprintf("a default is a %T", v))
}
