// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/espalier-dev/espalier/internal/mcpserver/call"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Tool is one served tool. It is immutable.
type Tool struct {
	Name string
	// EntryPoint tools stand before all others in lists.
	EntryPoint bool
	// Modern and Legacy are the definitions as listed to either era.
	Modern, Legacy json.RawMessage
	Input          *schema.Schema
	// Output is nil when the tool declares none.
	Output   *schema.Schema
	Handler  call.Handler
	Metadata map[string]string
	// Unchecked: the schemas are the upstream's own business.
	Unchecked bool

	config serverconfig.Tool
	group  *group
}

// HandlerFactory makes the handler of a tool from its declaration.
type HandlerFactory func(tool *serverconfig.Tool, input *schema.Schema) (call.Handler, error)

// Reasons why an entry of the catalog is not served.
const (
	ReasonInvalidDefinition = "InvalidDefinition"
	ReasonInvalidInput      = "InvalidInputSchema"
	ReasonInvalidOutput     = "InvalidOutputSchema"
	ReasonInvalidHandler    = "InvalidHandler"
	ReasonDuplicate         = "DuplicateName"
)

// buildError says why one tool cannot be served.
type buildError struct {
	reason string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() }
func (e *buildError) Unwrap() error { return e.err }

func buildTool(config serverconfig.Tool, factory HandlerFactory) (_ *Tool, failure *buildError) {
	defer func() {
		if r := recover(); r != nil {
			failure = &buildError{ReasonInvalidHandler, errors.New("the tool cannot be prepared")}
		}
	}()
	definition, err := wire.DecodeObject(config.Definition)
	if err != nil {
		return nil, &buildError{ReasonInvalidDefinition, err}
	}
	if name, _ := definition.Text("name"); name != config.Name || name == "" {
		return nil, &buildError{ReasonInvalidDefinition, fmt.Errorf("the definition is of %q, the entry of %q", name, config.Name)}
	}
	t := &Tool{
		Name: config.Name, EntryPoint: config.Metadata["entryPoint"] == "true",
		Metadata: config.Metadata, config: config, group: newGroup(),
	}
	if failure := t.compileSchemas(definition); failure != nil {
		return nil, failure
	}
	output := definition.Get("outputSchema")
	if t.Handler, err = factory(&t.config, t.Input); err != nil {
		return nil, &buildError{ReasonInvalidHandler, err}
	}
	t.Modern = compact(config.Definition)
	t.Legacy = t.Modern
	if output != nil && !isObjectSchema(output) {
		// Older revisions know only objects there.
		t.Legacy = without(definition, "outputSchema")
	}
	return t, nil
}

// compileSchemas fills Input and Output. Of a tool of an upstream a schema
// that cannot be compiled is passed on: the server behind applies it.
func (t *Tool) compileSchemas(definition wire.Object) *buildError {
	var err error
	input, output := definition.Get("inputSchema"), definition.Get("outputSchema")
	foreign := t.config.Upstream != nil
	if t.Input, err = schema.CompileInput(input); err != nil {
		if !foreign || !wire.IsObject(input) {
			return &buildError{ReasonInvalidInput, err}
		}
		t.Input, t.Unchecked = schema.Unchecked(), true
	}
	if output == nil {
		return nil
	}
	if t.Output, err = schema.Compile(output); err != nil {
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
