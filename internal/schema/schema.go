// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema compiles and applies the JSON Schemas of tools: 2020-12 (the
// default) and draft-07. References that leave the document are refused, never
// followed; "format" is not asserted. The operator compiles a schema to accept
// it and the shared server compiles it again, by the same code.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

const (
	// MaxBytes of one schema.
	MaxBytes = 64 << 10
	// maxError is the longest error text, in bytes.
	maxError = 300
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	resolved *jsonschema.Resolved
	numbers  *numbers
	headers  []HeaderParam
	// properties declared at the root, and whether others are meant to come.
	properties map[string]struct{}
	open       bool
	// trivial schemas accept any object, so that no validation is run.
	trivial bool
}

// CompileInput compiles a tool's inputSchema, whose root must be of type
// object and whose x-mcp-header annotations must be sound.
func CompileInput(raw json.RawMessage) (*Schema, error) {
	s, root, err := compile(raw)
	if err != nil {
		return nil, err
	}
	object, ok := root.(map[string]any)
	if !ok || object["type"] != "object" {
		return nil, errors.New(`the schema of a tool's input must have "type": "object" at its root`)
	}
	if s.headers, err = headerParams(object); err != nil {
		return nil, headersError{bounded(err.Error())}
	}
	s.numbers = numbersOf(object)
	s.trivial = isTrivial(object)
	declared, _ := object["properties"].(map[string]any)
	s.properties = make(map[string]struct{}, len(declared))
	for name := range declared {
		s.properties[name] = struct{}{}
	}
	additional, explicit := object["additionalProperties"]
	s.open = len(declared) == 0 || explicit && additional != false
	return s, nil
}

// Unchecked is a schema that lets every object pass. It stands in for one that
// cannot be compiled and that somebody else applies.
func Unchecked() *Schema { return &Schema{trivial: true, open: true} }

// Compile compiles any other schema.
func Compile(raw json.RawMessage) (*Schema, error) {
	s, _, err := compile(raw)
	return s, err
}

func compile(raw json.RawMessage) (_ *Schema, root any, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the schema cannot be compiled")
		}
	}()
	if len(raw) > MaxBytes {
		return nil, nil, fmt.Errorf("the schema has %d bytes, at most %d are allowed", len(raw), MaxBytes)
	}
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	switch root.(type) {
	case map[string]any, bool:
	default:
		return nil, nil, errors.New("a schema is an object or a boolean")
	}
	var parsed jsonschema.Schema
	if err := json.Unmarshal(raw, &parsed); err != nil {
		return nil, nil, bounded(err.Error())
	}
	if err := checkTypes(root, "", 0); err != nil {
		return nil, nil, err
	}
	if err := checkExpansion(root); err != nil {
		return nil, nil, &expansionError{err}
	}
	resolved, err := parsed.Resolve(nil)
	if err != nil {
		return nil, nil, bounded(err.Error())
	}
	// An unknown dialect shows only when it is applied.
	if err := resolved.Validate(map[string]any{}); err != nil && strings.HasPrefix(err.Error(), "cannot validate version") {
		return nil, nil, bounded(err.Error())
	}
	return &Schema{resolved: resolved}, root, nil
}

// Validate checks a decoded JSON value (numbers as int64, uint64 or float64).
// The error is one short line that names the place.
func (s *Schema) Validate(value any) (err error) {
	if s.trivial {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the value cannot be validated")
		}
	}()
	if err := s.resolved.Validate(value); err != nil {
		return readable(err)
	}
	return nil
}

// Expects reports whether the input schema means name to be given: it declares
// it, declares nothing at all, or opens itself by additionalProperties. JSON
// Schema lets any name pass by default, which is no reason to pass it on.
func (s *Schema) Expects(name string) bool {
	_, declared := s.properties[name]
	return declared || s.open
}

// Headers are the parameters that clients mirror into HTTP headers.
func (s *Schema) Headers() []HeaderParam { return s.headers }

// isTrivial reports whether a root of type object constrains nothing else.
func isTrivial(root map[string]any) bool {
	for key, value := range root {
		switch key {
		case "type", "title", "description", "$schema", "$comment", "examples", "$id":
		case "properties":
			if m, ok := value.(map[string]any); !ok || len(m) > 0 {
				return false
			}
		case "additionalProperties":
			if value != true {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// readable drops the chain of "validating ..." but for the innermost place.
func readable(err error) error {
	place := ""
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		head, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		place, text = strings.TrimPrefix(head, "validating "), rest
	}
	if name := placeName(place); name != "" {
		text = name + ": " + text
	}
	return bounded(text)
}

// placeName turns /properties/a/items/properties/b into a[].b and leaves any
// other path as it is.
func placeName(path string) string {
	if !strings.HasPrefix(path, "/") {
		return ""
	}
	var out strings.Builder
	parts := strings.Split(path[1:], "/")
	for i := 0; i < len(parts); i++ {
		switch {
		case parts[i] == "properties" && i+1 < len(parts):
			i++
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(parts[i])
		case parts[i] == "items":
			out.WriteString("[]")
		default:
			return path
		}
	}
	return out.String()
}

func bounded(text string) error {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError-3], "") + "..."
	}
	return errors.New(text)
}
