// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogdocs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of what a page shows of one schema.
const (
	maxDepth = 8
	maxRows  = 200
)

// field is one member that a schema describes, nested ones by their path:
// "filter.tags[].name".
type field struct {
	path, kind, what string
	required         bool
}

// fields of a schema: first its own in the order of their names, each followed
// by what is in it. References stay within the schema.
func fields(raw json.RawMessage) []field {
	root, ok := decoded(raw).(map[string]any)
	if !ok {
		return nil
	}
	w := &walker{root: root}
	w.object("", root, []string{"#"})
	return w.rows
}

func decoded(raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return nil
	}
	return value
}

type walker struct {
	root map[string]any
	rows []field
}

// object adds the members of one. within are the references that led here: what
// refers to itself is shown once.
func (w *walker) object(path string, schema map[string]any, within []string) {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if len(w.rows) >= maxRows {
			return
		}
		member, _ := properties[name].(map[string]any)
		described := member
		member = w.resolve(member)
		f := field{path: path + name, kind: w.kind(member, 0), required: slices.Contains(required, any(name))}
		f.what = what(described, member)
		w.rows = append(w.rows, f)
		w.below(f.path, described, within)
	}
}

// below walks into an object, or the items of a list.
func (w *walker) below(path string, schema map[string]any, within []string) {
	for _, step := range []string{"", "[]"} {
		ref, _ := schema["$ref"].(string)
		if slices.Contains(within, ref) && ref != "" || len(within) > maxDepth {
			return
		}
		within, schema = slices.Concat(within, []string{ref}), w.resolve(schema)
		path += step
		items, ok := schema["items"].(map[string]any)
		if step != "" || !ok {
			break
		}
		schema = items
	}
	w.object(path+".", schema, within)
}

// resolve follows a reference within the schema, as far as it leads anywhere.
func (w *walker) resolve(schema map[string]any) map[string]any {
	for range maxDepth {
		ref, ok := schema["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			return schema
		}
		var at any = w.root
		for part := range strings.SplitSeq(ref[2:], "/") {
			object, _ := at.(map[string]any)
			at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		next, ok := at.(map[string]any)
		if !ok {
			return schema
		}
		schema = next
	}
	return schema
}

// kind of a value in words: "integer", "list of string", "string or null".
func (w *walker) kind(schema map[string]any, depth int) string {
	schema = w.resolve(schema)
	if depth > maxDepth {
		return "any"
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := schema[key].([]any); ok && len(list) > 0 {
			return w.either(list, depth)
		}
	}
	switch t := schema["type"].(type) {
	case string:
		if items, ok := schema["items"].(map[string]any); t == "array" && ok {
			return "list of " + w.kind(items, depth+1)
		}
		return strings.Replace(t, "array", "list", 1)
	case []any:
		var all []string
		for _, one := range t {
			all = append(all, fmt.Sprint(one))
		}
		return strings.Join(all, " or ")
	}
	if schema["properties"] != nil {
		return "object"
	}
	if value, ok := schema["const"]; ok {
		return compact(value)
	}
	return "any"
}

func (w *walker) either(list []any, depth int) string {
	var all []string
	for _, one := range list {
		schema, _ := one.(map[string]any)
		if k := w.kind(schema, depth+1); !slices.Contains(all, k) {
			all = append(all, k)
		}
	}
	return strings.Join(all, " or ")
}

// what a field is for, with the values it may have. A description beside a
// reference stands before that of what it refers to.
func what(described, schema map[string]any) string {
	text, _ := described["description"].(string)
	if text == "" {
		text, _ = schema["description"].(string)
	}
	out := []string{}
	if text != "" {
		out = append(out, text)
	}
	if list, ok := schema["enum"].([]any); ok && len(list) > 0 {
		var values []string
		for _, value := range list[:min(len(list), 30)] {
			values = append(values, compact(value))
		}
		if len(list) > 30 {
			values = append(values, "...")
		}
		out = append(out, "One of "+strings.Join(values, ", ")+".")
	}
	for _, bound := range []struct{ key, text string }{
		{"minimum", "At least %s."}, {"exclusiveMinimum", "More than %s."}, {"maximum", "At most %s."}, {"exclusiveMaximum", "Less than %s."},
		{"minLength", "%s characters at least."}, {"maxLength", "%s characters at most."}, {"minItems", "%s items at least."}, {"maxItems", "%s items at most."},
		{"format", "Format %s."}, {"pattern", "Pattern %s."}, {"default", "Default %s."},
	} {
		for _, source := range []map[string]any{described, schema} {
			if value, ok := source[bound.key]; ok {
				out = append(out, fmt.Sprintf(bound.text, compact(value)))
				break
			}
		}
	}
	return strings.Join(out, " ")
}

// compact is a value as JSON; a text that needs no quotes has none.
func compact(value any) string {
	if number, ok := value.(json.Number); ok {
		return number.String()
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(value) != nil {
		return ""
	}
	text := strings.TrimSpace(b.String())
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "..."
	}
	return text
}
