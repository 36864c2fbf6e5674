// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// annotation marks a parameter that clients mirror into Mcp-Param-NAME.
const annotation = "x-mcp-header"

// ErrHeaders is what the error of an input schema is whose annotations are
// unsound: clients must not call such a tool by HTTP.
var ErrHeaders = errors.New("unsound " + annotation)

// headersError is an ErrHeaders with a text of its own.
type headersError struct{ error }

// Is is for errors.Is.
func (headersError) Is(target error) bool { return target == ErrHeaders }

// HeaderParam is one parameter that is mirrored into a header.
type HeaderParam struct {
	// Name after "Mcp-Param-".
	Name string
	// Path of property names from the arguments' root.
	Path []string
	// Type is string, integer or boolean.
	Type string
}

// headerParams collects the annotations of an input schema. One that stands
// where a client could not find its value makes the whole definition invalid.
func headerParams(root map[string]any) ([]HeaderParam, error) {
	var found []HeaderParam
	if err := collectHeaders(root, nil, &found); err != nil {
		return nil, err
	}
	if total := countAnnotations(root, 0); total != len(found) {
		return nil, errors.New(annotation + " may stand only on properties reached through \"properties\" alone")
	}
	seen := map[string]bool{}
	for _, h := range found {
		lower := strings.ToLower(h.Name)
		if seen[lower] {
			return nil, fmt.Errorf("%s %q is used twice", annotation, h.Name)
		}
		seen[lower] = true
	}
	return found, nil
}

func collectHeaders(node map[string]any, path []string, found *[]HeaderParam) error {
	properties, _ := node["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		at := append(slices.Clone(path), name)
		if value, ok := property[annotation]; ok {
			header, ok := value.(string)
			if !ok || !isToken(header) {
				return fmt.Errorf("%s of %q is not a header name", annotation, strings.Join(at, "."))
			}
			kind, _ := property["type"].(string)
			if kind != "string" && kind != "integer" && kind != "boolean" {
				return fmt.Errorf("%s of %q wants the type string, integer or boolean", annotation, strings.Join(at, "."))
			}
			*found = append(*found, HeaderParam{Name: header, Path: at, Type: kind})
		}
		if err := collectHeaders(property, at, found); err != nil {
			return err
		}
	}
	return nil
}

// countAnnotations counts them wherever a schema may stand. Below
// "properties" keys are names of the author's, not keywords.
func countAnnotations(node any, depth int) int {
	if depth > maxSchemaDepth {
		return 0
	}
	total := 0
	switch node := node.(type) {
	case map[string]any:
		if _, ok := node[annotation]; ok {
			total++
		}
		for key, child := range node {
			switch key {
			case "enum", "const", "default", "examples", annotation:
			case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
				if children, ok := child.(map[string]any); ok {
					for _, c := range children {
						total += countAnnotations(c, depth+1)
					}
				}
			default:
				total += countAnnotations(child, depth+1)
			}
		}
	case []any:
		for _, child := range node {
			total += countAnnotations(child, depth+1)
		}
	}
	return total
}

func isToken(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range []byte(s) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}
