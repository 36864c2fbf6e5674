// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	// maxOperations of one document are looked at.
	maxOperations = 5000
	// maxTotal is how large all definitions may be together, in bytes.
	maxTotal = 8 << 20
	// maxDescription of a tool and maxNote of a parameter, in bytes.
	maxDescription = 8 << 10
	maxNote        = 2 << 10
	maxTitle       = 256
	// maxVerbose is how large an output schema may be with all its notes, in
	// bytes.
	maxVerbose = 8 << 10
)

// Reason says why an operation, or a part of it, is left out.
type Reason string

// Reasons.
const (
	// ReasonUnsupportedMethod: OPTIONS, TRACE and the like.
	ReasonUnsupportedMethod Reason = "UnsupportedMethod"
	// ReasonUnsupportedMediaType: its body has no media type known here.
	ReasonUnsupportedMediaType Reason = "UnsupportedMediaType"
	// ReasonUnsupportedParameter: a parameter is written in a way that is not
	// known here.
	ReasonUnsupportedParameter Reason = "UnsupportedParameter"
	// ReasonCookieParameter: cookies are not sent.
	ReasonCookieParameter Reason = "CookieParameter"
	// ReasonStrayReference: it refers to another document, or to nothing.
	ReasonStrayReference Reason = "StrayReference"
	// ReasonInvalidPath: no URL can be made of its path.
	ReasonInvalidPath Reason = "InvalidPath"
	// ReasonOtherServer: it is served at another origin than the rest, where
	// no credential may go.
	ReasonOtherServer Reason = "OtherServer"
	// ReasonSchemaTooLarge: its schemas, or those of all, are beyond reason.
	ReasonSchemaTooLarge Reason = "SchemaTooLarge"
	// ReasonTooManyOperations: the document has more than are looked at.
	ReasonTooManyOperations Reason = "TooManyOperations"
	// ReasonCallbacks: what the API would send back is not received.
	ReasonCallbacks Reason = "CallbacksIgnored"
	// ReasonSchemaSimplified: a schema was too large and lost its details.
	ReasonSchemaSimplified Reason = "SchemaSimplified"
)

// Left is an operation that is not served or, if Served, a tool of which a
// part is left out.
type Left struct {
	// Name that the tool has, or would have.
	Name   string
	Reason Reason
	Served bool
}

// Tool is a tool made of one operation.
type Tool struct {
	Name string
	// Definition is its whole object as it is listed.
	Definition json.RawMessage
	Request    Request
}

// Options of Tools.
type Options struct {
	// Base is the URL that paths follow.
	Base string
	// BaseDeclared: Base is the owner's, not of the document; operations'
	// own servers do not count then.
	BaseDeclared bool
	// DocumentURL that servers are relative to; empty for none.
	DocumentURL string
	// Headers that the connection sets by itself.
	Headers []string
	// Wanted says by name which tools are to be made; nil is all.
	Wanted func(name string) bool
}

// operation of a document.
type operation struct {
	ID, method, path, name string
	item                   *openapi3.PathItem
	op                     *openapi3.Operation
}

// methods that can be mapped, in the order of tools of one path.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Tools makes tools of all operations that can be mapped, sorted by path and
// method, and names the others.
func (d *Document) Tools(options Options) (tools []Tool, left []Left) {
	all := d.operations()
	nameAll(all)
	total := 0
	for i, o := range all {
		if options.Wanted != nil && !options.Wanted(o.name) {
			continue
		}
		out := &builder{Document: d, options: &options, operation: o}
		reason := ReasonTooManyOperations
		if i < maxOperations {
			reason = out.make()
		}
		if reason == "" && total+len(out.tool.Definition) > maxTotal {
			reason = ReasonSchemaTooLarge
		}
		if reason != "" {
			left = append(left, Left{Name: o.name, Reason: reason})
			continue
		}
		total += len(out.tool.Definition)
		tools = append(tools, out.tool)
		slices.Sort(out.partly)
		for _, part := range slices.Compact(out.partly) {
			left = append(left, Left{Name: o.name, Reason: part, Served: true})
		}
	}
	return tools, left
}

func (d *Document) operations() []*operation {
	var out []*operation
	for _, path := range slices.Sorted(maps.Keys(d.doc.Paths.Map())) {
		item := d.doc.Paths.Value(path)
		if item == nil {
			continue
		}
		byMethod := item.Operations()
		for _, method := range slices.SortedFunc(maps.Keys(byMethod), compareMethods) {
			op := byMethod[method]
			out = append(out, &operation{ID: op.OperationID, method: method, path: path, item: item, op: op})
		}
	}
	return out
}

func compareMethods(a, b string) int {
	i, j := slices.Index(methods, a), slices.Index(methods, b)
	if i != j && i >= 0 && j >= 0 {
		return i - j
	}
	if i != j {
		return j - i // The unknown come last.
	}
	return strings.Compare(a, b)
}
