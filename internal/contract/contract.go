// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract gives a tool definition its digest, field by field. The
// operator takes the digests of what it declares, the probe those of what a
// server lists; two definitions that mean the same have the same digest, in
// whatever order, spacing or number notation they were written.
package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

const (
	// Version prefixes a tool's digest and names the recipe it was made by.
	Version = "v1"
	// MaxBytes is the largest definition that is digested. Canonical JSON of
	// hostile input costs about a hundred times its size in memory while it is
	// made; what can be declared is smaller by far.
	MaxBytes = 512 << 10
)

var (
	// ErrTooLarge says that a definition is larger than MaxBytes.
	ErrTooLarge = errors.New("definition too large")
	// ErrMalformed says that a definition is not an I-JSON object with a
	// string for a name. The text of the definition is never part of it.
	ErrMalformed = errors.New("malformed definition")
)

// Fields are the digests of a definition's parts, each "sha256:HEX" of the
// part's RFC 8785 JSON, or empty when the part is absent or null.
type Fields struct {
	Title        string `json:"title,omitempty"`
	Description  string `json:"description,omitempty"`
	InputSchema  string `json:"inputSchema,omitempty"`
	OutputSchema string `json:"outputSchema,omitempty"`
	Annotations  string `json:"annotations,omitempty"`
	// Other is of an object of all the rest but the icons, which no model
	// reads: _meta, execution and what later revisions add.
	Other string `json:"other,omitempty"`
}

// Tool is what is compared of a tool definition.
type Tool struct {
	// Name on the wire, byte for byte. It may be empty or hold anything a
	// JSON string can.
	Name string `json:"name"`
	// Digest of the name and the fields, "v1:sha256:HEX".
	Digest string `json:"digest"`
	Fields Fields `json:"fields"`
}

// Keys of what is unique among the entries of a list.
const (
	KeyName        = "name" // tools and prompts
	KeyURI         = "uri"
	KeyURITemplate = "uriTemplate"
)

// Of gives the digests of one definition as it is listed. The error wraps
// ErrMalformed or ErrTooLarge.
func Of(raw json.RawMessage) (Tool, error) { return OfEntry(raw, KeyName) }

// OfEntry is Of for an entry of any list; what stands under key is its
// identity and becomes the Name. A resource's own name counts among Other.
func OfEntry(raw json.RawMessage, key string) (Tool, error) {
	parts, err := split(raw)
	if err != nil {
		return Tool{}, err
	}
	var tool Tool
	if err := json.Unmarshal(parts[key], &tool.Name); err != nil || string(parts[key]) == "null" {
		return Tool{}, fmt.Errorf("%w: no string for a %s", ErrMalformed, key)
	}
	delete(parts, key)
	delete(parts, "icons")
	take := func(key string) string {
		value, ok := parts[key]
		delete(parts, key)
		if !ok || string(value) == "null" {
			return ""
		}
		return digest(value)
	}
	tool.Fields = Fields{
		Title:        take("title"),
		Description:  take("description"),
		InputSchema:  take("inputSchema"),
		OutputSchema: take("outputSchema"),
		Annotations:  take("annotations"),
	}
	if tool.Fields.Other, err = other(parts); err != nil {
		return Tool{}, err
	}
	tool.Digest, err = whole(tool.Name, tool.Fields)
	return tool, err
}

// OfText is the digest of a text such as a server's instructions:
// "v1:sha256:HEX" of its RFC 8785 JSON string, or empty for the empty text.
func OfText(text string) string {
	if text == "" {
		return ""
	}
	encoded, err := canonicalOf(text)
	if err != nil {
		return ""
	}
	return Version + ":" + digest(encoded)
}

// Differing names the fields in which two definitions differ, in the order
// of Fields. A field that want leaves empty while got has it differs too.
func Differing(want, got Fields) []string {
	var names []string
	for _, f := range []struct{ name, want, got string }{
		{"title", want.Title, got.Title},
		{"description", want.Description, got.Description},
		{"inputSchema", want.InputSchema, got.InputSchema},
		{"outputSchema", want.OutputSchema, got.OutputSchema},
		{"annotations", want.Annotations, got.Annotations},
		{"other", want.Other, got.Other},
	} {
		if f.want != f.got {
			names = append(names, f.name)
		}
	}
	return names
}

// split gives the canonical JSON of each member. The members of a canonical
// object are canonical themselves, so one pass over the whole is enough.
func split(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, %d are digested", ErrTooLarge, len(raw), MaxBytes)
	}
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, fmt.Errorf("%w: not JSON in UTF-8", ErrMalformed)
	}
	canonical, err := jcs.Transform(raw)
	if err != nil {
		// The cause quotes the input: keep it out of errors.
		return nil, fmt.Errorf("%w: no canonical form (a repeated key, a lone surrogate or a number out of range)", ErrMalformed)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(canonical, &parts); err != nil || parts == nil {
		return nil, fmt.Errorf("%w: not an object", ErrMalformed)
	}
	return parts, nil
}

// other digests the members that have no field of their own. A null member
// counts as absent, as it does everywhere else.
func other(parts map[string]json.RawMessage) (string, error) {
	for key, value := range parts {
		if string(value) == "null" {
			delete(parts, key)
		}
	}
	if len(parts) == 0 {
		return "", nil
	}
	encoded, err := canonicalOf(parts)
	if err != nil {
		return "", err
	}
	return digest(encoded), nil
}

func whole(name string, fields Fields) (string, error) {
	encoded, err := canonicalOf(struct {
		Name   string `json:"name"`
		Fields Fields `json:"fields"`
	}{name, fields})
	if err != nil {
		return "", err
	}
	return Version + ":" + digest(encoded), nil
}

func canonicalOf(v any) ([]byte, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	canonical, err := jcs.Transform(encoded)
	if err != nil {
		return nil, fmt.Errorf("%w: no canonical form", ErrMalformed)
	}
	return canonical, nil
}

func digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return "sha256:" + hex.EncodeToString(sum[:])
}
