// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"reflect"

	"github.com/espalier-dev/espalier/internal/mcpserver/access"
	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Tool is one served tool. It is immutable.
type Tool struct {
	Entry
	Input *schema.Schema
	// Output is nil when the tool declares none.
	Output *schema.Schema
	// Unchecked: the schemas are the upstream's own business.
	Unchecked bool
	// Retrieve: it reads resources for its caller.
	Retrieve bool

	config serverconfig.Tool
	// input and output are the raw schemas; output is nil for none.
	input, output []byte
}

// Keys of the identity in definitions.
const (
	keyName        = "name"
	keyURI         = "uri"
	keyURITemplate = "uriTemplate"
)

// HandlerFactory makes the handler of a tool from its declaration.
type HandlerFactory func(tool *serverconfig.Tool, input *schema.Schema) (call.Handler, error)

// Reasons why an entry of the catalog is not served.
const (
	ReasonInvalidDefinition = "InvalidDefinition"
	ReasonInvalidInput      = "InvalidInputSchema"
	ReasonInvalidOutput     = "InvalidOutputSchema"
	ReasonInvalidHandler    = "InvalidHandler"
	ReasonInvalidURI        = "InvalidURI"
	ReasonDuplicate         = "DuplicateName"
)

// buildError says why one entry cannot be served.
type buildError struct {
	reason string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }

func declareTool(config serverconfig.Tool, factory HandlerFactory) declared[*Tool] {
	return declared[*Tool]{
		name: config.Name, when: config.When, source: config.Source,
		same:    func(t *Tool) bool { return reflect.DeepEqual(t.config, config) },
		build:   func() (*Tool, *buildError) { return buildTool(config, factory, nil) },
		rebuild: func(before *Tool) (*Tool, *buildError) { return buildTool(config, factory, before) },
	}
}

// buildTool makes a tool. Of before, which may be nil, it takes over what is
// costly to compile and has not changed.
func buildTool(config serverconfig.Tool, factory HandlerFactory, before *Tool) (*Tool, *buildError) {
	t := &Tool{Entry: Entry{Name: config.Name, Metadata: config.Metadata, kind: access.Tool, source: config.Source}, config: config}
	definition, failure := t.decode(config.Definition, keyName)
	if failure != nil {
		return nil, failure
	}
	t.input, t.output = definition.Get("inputSchema"), definition.Get("outputSchema")
	if before != nil && bytes.Equal(t.input, before.input) && bytes.Equal(t.output, before.output) && t.config.Source == before.config.Source {
		t.Input, t.Output, t.Unchecked = before.Input, before.Output, before.Unchecked
	} else if failure := t.compileSchemas(); failure != nil {
		return nil, failure
	}
	if before != nil && t.Input == before.Input && sameHandler(t.config, before.config) {
		t.Handler = before.Handler
	} else if failure := t.makeHandler(factory); failure != nil {
		return nil, failure
	}
	if t.output != nil && !isObjectSchema(t.output) {
		// Older revisions know only objects there.
		t.Legacy = without(definition, "outputSchema")
	}
	return t, nil
}

func (t *Tool) makeHandler(factory HandlerFactory) (failure *buildError) {
	var err error
	if t.Handler, err = factory(&t.config, t.Input); err != nil {
		return &buildError{ReasonInvalidHandler, err}
	}
	return nil
}

// sameHandler reports whether two declarations of one name make the same
// handler of the same schema. How a tool is described is no business of it.
func sameHandler(a, b serverconfig.Tool) bool {
	a.Definition, b.Definition, a.Metadata, b.Metadata = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// compileSchemas fills Input and Output. Of a tool of an upstream a schema
// that cannot be compiled is passed on: the server behind applies it.
func (t *Tool) compileSchemas() *buildError {
	var err error
	foreign := serverconfig.FromUpstream(t.config.Source)
	if t.Input, err = schema.CompileInput(t.input); err != nil {
		if !foreign || !wire.IsObject(t.input) {
			return &buildError{ReasonInvalidInput, err}
		}
		t.Input, t.Unchecked = schema.Unchecked(), true
	}
	if t.output == nil {
		return nil
	}
	if t.Output, err = schema.Compile(t.output); err != nil {
		if !foreign {
			return &buildError{ReasonInvalidOutput, err}
		}
		t.Output, t.Unchecked = nil, true
	}
	return nil
}

// isObjectSchema reports whether a schema says of itself that it is of type
// object, as revisions before 2026-07-28 demand.
func isObjectSchema(raw []byte) bool {
	object, err := wire.DecodeObject(raw)
	if err != nil {
		return false
	}
	kind, _ := object.Text("type")
	return kind == "object"
}

func without(object wire.Object, key string) json.RawMessage {
	out := []byte{'{'}
	for _, field := range object {
		if field.Key == key {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = wire.AppendString(out, field.Key)
		out = append(out, ':')
		out = append(out, field.Raw...)
	}
	return compact(append(out, '}'))
}
