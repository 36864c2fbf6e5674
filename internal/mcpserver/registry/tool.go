// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/mcpserver/access"
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

	config serverconfig.Tool
	group  *group
	vars   func() map[string]any
}

// Vars are the expression variables that describe the tool.
func (t *Tool) Vars() map[string]any { return t.vars() }

// AccessEntry is the tool as access rules see it.
func (t *Tool) AccessEntry() access.Entry {
	return access.Entry{Kind: access.Tool, Name: t.Name, Vars: t.vars}
}

// describe gives the expression variables of a tool. Most catalogs have no
// rule that reads them.
func describe(config *serverconfig.Tool) func() map[string]any {
	return sync.OnceValue(func() map[string]any {
		value, err := wire.Decode(config.Definition)
		definition, ok := value.(map[string]any)
		if err != nil || !ok {
			definition = nil // It was read before: it is an object.
		}
		return expression.ToolVars(definition, config.Metadata, config.Source)
	})
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
	t.vars = describe(&t.config)
	if t.Input, err = schema.CompileInput(definition.Get("inputSchema")); err != nil {
		return nil, &buildError{ReasonInvalidInput, err}
	}
	output := definition.Get("outputSchema")
	if output != nil {
		if t.Output, err = schema.Compile(output); err != nil {
			return nil, &buildError{ReasonInvalidOutput, err}
		}
	}
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
