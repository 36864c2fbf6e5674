// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/urltemplate"
)

// builder makes one tool.
type builder struct {
	*Document
	*operation
	options *Options
	tool    Tool
	// partly are the reasons why parts are left out.
	partly []Reason
}

// make fills tool, or says why it cannot.
func (b *builder) make() Reason {
	if !slices.Contains(methods, b.method) {
		return ReasonUnsupportedMethod
	}
	base, reason := b.base()
	if reason != "" {
		return reason
	}
	in := &input{
		conversion: conversion{d: b.Document, way: request, refs: map[defKey]bool{}}, properties: object{},
		request: Request{Method: b.method},
	}
	if reason := b.inputs(in, base); reason != "" {
		return reason
	}
	inputSchema, reason := b.inputSchema(in)
	if reason != "" {
		return reason
	}
	definition := object{"name": b.name, "inputSchema": inputSchema, "annotations": annotations(b.method)}
	title, description := texts(b.op)
	if title != "" {
		definition["title"] = title
	}
	if description != "" {
		definition["description"] = description
	}
	if output := b.outputSchema(); output != nil {
		definition["outputSchema"] = output
	}
	raw, err := encode(definition)
	if err != nil {
		return ReasonSchemaTooLarge
	}
	b.tool = Tool{Name: b.name, Definition: raw, Request: in.request}
	if len(b.op.Callbacks) > 0 {
		b.partly = append(b.partly, ReasonCallbacks)
	}
	return ""
}

// inputs takes in parameters, path and body. What is optional and cannot be
// mapped is left out, what is required takes the operation with it.
func (b *builder) inputs(in *input, base string) Reason {
	for _, p := range parameters(b.item, b.op) {
		reason := in.parameter(p, b.options.Headers)
		if reason == "" {
			continue
		}
		if p.Required || p.In == openapi3.ParameterInPath || reason == ReasonStrayReference {
			return reason
		}
		b.partly = append(b.partly, reason)
	}
	if reason := b.body(in); reason != "" {
		return reason
	}
	path, ok := in.target(b.path)
	if !ok || !strings.HasPrefix(path, "/") {
		return ReasonInvalidPath
	}
	base, query, _ := strings.Cut(base, "?")
	in.request.URL = strings.TrimSuffix(base, "/") + path
	if query != "" {
		in.request.URL += "?" + query
	}
	if _, err := urltemplate.Parse(in.request.URL); err != nil {
		return ReasonInvalidPath
	}
	if in.stray || in.deep {
		return ReasonStrayReference
	}
	return ""
}

// body takes in the body, where the method can have one.
func (b *builder) body(in *input) Reason {
	ref := b.op.RequestBody
	if ref == nil || b.method == http.MethodGet || b.method == http.MethodHead {
		return ""
	}
	reason := in.body(ref)
	if reason == ReasonStrayReference || reason != "" && ref.Value.Required {
		return reason
	}
	if reason != "" {
		b.partly = append(b.partly, reason)
	}
	return ""
}

// inputSchema gives the schema of the arguments, with less detail where it
// would be too large to be checked.
func (b *builder) inputSchema(in *input) (object, Reason) {
	defs := b.closure(in.refs)
	for _, def := range defs {
		if def.stray || def.deep {
			return nil, ReasonStrayReference
		}
	}
	root := object{"type": "object", "properties": in.properties, "additionalProperties": false}
	if len(in.required) > 0 {
		root["required"] = in.required
	}
	out := withDefs(root, defs)
	if b.fits(out) {
		return out, ""
	}
	b.partly = append(b.partly, ReasonSchemaSimplified)
	if out = terse(out); b.fits(out) {
		return out, ""
	}
	for name, property := range in.properties {
		in.properties[name] = outline(property, defs)
	}
	if root["properties"] = in.properties; b.fits(root) {
		return root, ""
	}
	return nil, ReasonSchemaTooLarge
}

// outputSchema of the answers of success; nil unless each of them is JSON.
func (b *builder) outputSchema() any {
	if b.op.Responses == nil || b.method == http.MethodHead {
		return nil
	}
	way := &conversion{d: b.Document, way: response, refs: map[defKey]bool{}}
	kinds := b.answers(way)
	if len(kinds) == 0 || way.stray || way.deep {
		return nil
	}
	defs := b.closure(way.refs)
	for _, def := range defs {
		if def.stray || def.deep {
			return nil
		}
	}
	return b.joined(kinds, defs)
}

// answers are the different schemas of the answers of success; none unless
// each of them has one.
func (b *builder) answers(way *conversion) []any {
	var kinds []any
	for _, code := range sortedKeys(b.op.Responses.Map()) {
		if !strings.HasPrefix(code, "2") {
			continue
		}
		answer := b.op.Responses.Value(code)
		if answer == nil || answer.Value == nil {
			return nil
		}
		media := jsonContent(answer.Value.Content)
		if media == nil || media.Schema == nil {
			return nil
		}
		kind := way.schema(b.node(media.Schema), 0)
		if !slices.ContainsFunc(kinds, func(other any) bool { return reflect.DeepEqual(kind, other) }) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// joined is the output schema of one or several kinds of answers.
func (b *builder) joined(kinds []any, defs map[defKey]*definition) any {
	root, ok := kinds[0].(object)
	switch {
	case len(kinds) > 1:
		root = object{"anyOf": kinds}
		if slices.IndexFunc(kinds, func(kind any) bool { return b.typeOf(kind, defs) != "object" }) < 0 {
			root["type"] = "object"
		}
	case !ok || len(root) == 0:
		return nil
	case root["type"] == nil && b.typeOf(root, defs) == "object":
		// Older revisions want to read it at the root.
		root = maps.Clone(root)
		root["type"] = "object"
	}
	out := withDefs(root, defs)
	if raw, err := encode(out); err != nil || len(raw) > maxVerbose {
		out = terse(out)
	}
	// Nothing is promised that cannot be checked.
	switch err := b.compile(out); {
	case err == nil:
		return out
	case errors.Is(err, errTooLarge):
		b.partly = append(b.partly, ReasonSchemaSimplified)
	}
	return nil
}

// typeOf is the type that a converted schema says it is of.
func (b *builder) typeOf(node any, defs map[defKey]*definition) string {
	for range maxRefs {
		in, _ := node.(object)
		ref, ok := in["$ref"].(string)
		if !ok {
			name, _ := in["type"].(string)
			return name
		}
		node = nil
		for _, def := range defs {
			if defsPrefix+def.name == ref {
				node = def.schema
			}
		}
	}
	return ""
}

// fits reports whether a schema is small enough to be compiled and does not
// expand without bound.
func (d *Document) fits(root object) bool {
	return !errors.Is(d.compile(root), schema.ErrExpansion) && !errors.Is(d.compile(root), errTooLarge)
}

var errTooLarge = errors.New("the schema is too large")

// compile says why a schema cannot be compiled. Many operations have one in
// common.
func (d *Document) compile(root object) error {
	raw, err := encode(root)
	if err != nil {
		return err
	}
	if len(raw) > schema.MaxBytes {
		return errTooLarge
	}
	key := sha256.Sum256(raw)
	known, ok := d.compiled[key]
	if !ok {
		_, known = schema.Compile(raw)
		d.compiled[key] = known
	}
	return known
}

// texts gives title and description of a tool.
func texts(op *openapi3.Operation) (title, description string) {
	title = clip(strings.TrimSpace(op.Summary), maxTitle)
	description = strings.TrimSpace(op.Description)
	if description == "" {
		description = strings.TrimSpace(op.Summary)
	}
	if op.Deprecated {
		description = strings.TrimSpace("Deprecated. " + description)
	}
	return title, clip(description, maxDescription)
}

// annotations follow from what the method means.
func annotations(method string) object {
	switch method {
	case http.MethodGet, http.MethodHead:
		return object{"readOnlyHint": true}
	case http.MethodPut, http.MethodDelete:
		return object{"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true}
	}
	return object{"readOnlyHint": false}
}

func clip(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	text = text[:limit-len("…")]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text + "…"
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// node gives a schema as plain JSON.
func (d *Document) node(ref *openapi3.SchemaRef) any {
	if ref == nil {
		return true
	}
	raw, err := json.Marshal(ref)
	if err != nil {
		return true
	}
	out, err := decode(raw)
	if err != nil {
		return true
	}
	return out
}
