// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	// MaxBytes of a document.
	MaxBytes = 4 << 20
	// maxReferences of a document: resolving a long chain of them takes time
	// by its square.
	maxReferences = 20_000
)

// Document is a parsed document. It is not safe for concurrent use.
type Document struct {
	doc *openapi3.T
	// tree is the document as plain JSON values, for references.
	tree any
	// defs are schemas that others refer to, by their reference and direction.
	defs map[defKey]*definition
	// open are those of defs that are yet to be converted.
	open []defKey
	// names of defs that are taken.
	names map[string]defKey
	// compiled says of schemas, by their digest, why they cannot be compiled.
	compiled map[[sha256.Size]byte]error
}

// Parse reads a document in JSON or YAML, of OpenAPI 3.0 or later. The error
// says what is wrong with it and may hold words of it: it is for the log.
func Parse(data []byte) (d *Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			d, err = nil, errors.New("the document cannot be read")
		}
	}()
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the document has more than %d bytes", MaxBytes)
	}
	if bytes.Count(data, []byte("$ref")) > maxReferences {
		return nil, fmt.Errorf("the document has more than %d references", maxReferences)
	}
	doc, err := load(data)
	if err != nil {
		return nil, err
	}
	switch {
	case doc.OpenAPI == "":
		return nil, errors.New("this is no OpenAPI document of version 3 (it has no field openapi)")
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return nil, fmt.Errorf("OpenAPI %.20q is not known, only 3.x", doc.OpenAPI)
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	d = &Document{doc: doc, defs: map[defKey]*definition{}, names: map[string]defKey{}, compiled: map[[sha256.Size]byte]error{}}
	d.tree, err = decode(raw)
	return d, err
}

// load reads data. What refers to nothing, or elsewhere, must not take the
// rest with it: a second attempt is made without it.
func load(data []byte) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(data)
	if err == nil {
		return doc, nil
	}
	repaired, ok := withoutStrayRefs(data)
	if !ok {
		return nil, err
	}
	return openapi3.NewLoader().LoadFromData(repaired)
}

// decode reads JSON and keeps numbers as they are written.
func decode(raw []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var out any
	err := decoder.Decode(&out)
	return out, err
}

// encode writes JSON without escaping HTML; keys are sorted.
func encode(value any) ([]byte, error) {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}
