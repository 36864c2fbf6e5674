// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import "maps"

// MetadataKeys classify a tool. In expressions they always exist.
var MetadataKeys = []string{"category", "tier", "costCategory", "requiresGPU", "entryPoint", "role"}

// ToolVars gives the variables of the Filter scope. definition is the tool's
// decoded wire object; what it lacks reads as empty.
func ToolVars(definition map[string]any, metadata map[string]string, source string) map[string]any {
	known := make(map[string]string, len(metadata)+len(MetadataKeys))
	for _, key := range MetadataKeys {
		known[key] = ""
	}
	maps.Copy(known, metadata)
	annotations, ok := definition["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	text := func(key string) string {
		s, _ := definition[key].(string)
		return s
	}
	return map[string]any{VarTool: map[string]any{
		"name": text("name"), "title": text("title"), "description": text("description"),
		"annotations": annotations, "metadata": known, "source": source,
	}}
}
