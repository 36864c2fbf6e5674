// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"encoding/json"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// definition is the wire object of a declared tool, in the order in which the
// specification names its fields.
type definition struct {
	Name         string                 `json:"name"`
	Title        string                 `json:"title,omitempty"`
	Description  string                 `json:"description,omitempty"`
	Icons        []mcpv1.Icon           `json:"icons,omitempty"`
	InputSchema  json.RawMessage        `json:"inputSchema"`
	OutputSchema json.RawMessage        `json:"outputSchema,omitempty"`
	Annotations  *mcpv1.ToolAnnotations `json:"annotations,omitempty"`
	Meta         json.RawMessage        `json:"_meta,omitempty"`
}

// anyObject is the inputSchema of a tool that declares none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// encodeDefinition gives the wire object of tool.
func encodeDefinition(tool *mcpv1.MCPTool) (json.RawMessage, error) {
	spec := &tool.Spec
	d := definition{
		Name: ToolName(tool), Title: spec.Title, Description: spec.Description,
		Icons: spec.Icons, InputSchema: anyObject, Annotations: spec.Annotations,
	}
	if !empty(spec.InputSchema) {
		d.InputSchema = spec.InputSchema.Raw
	}
	if !empty(spec.OutputSchema) {
		d.OutputSchema = spec.OutputSchema.Raw
	}
	if !empty(spec.Meta) {
		d.Meta = spec.Meta.Raw
	}
	return encodePlain(d)
}

// encodePlain is JSON without the escapes that HTML needs.
func encodePlain(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

func empty(j *mcpv1.JSON) bool { return j == nil || len(j.Raw) == 0 }

// ToolName is the tool's name on the wire.
func ToolName(tool *mcpv1.MCPTool) string {
	if tool.Spec.Name != "" {
		return tool.Spec.Name
	}
	return tool.Name
}

// Handler names what answers calls of tool, as in its status.
func Handler(tool *mcpv1.MCPTool) string {
	switch {
	case tool.Spec.HTTP != nil:
		return "http"
	case tool.Spec.Expression != nil:
		return "expression"
	case tool.Spec.Upstream != nil:
		return "upstream"
	default:
		return "none"
	}
}
