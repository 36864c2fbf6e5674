// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/schema"
)

// maxOdd is how much that is odd is told.
const maxOdd = 100

// oddity is one thing that clients may stumble over.
type oddity struct {
	Code   string `json:"code"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail"`
}

// oddities are what the definitions of tools have that clients, or the models
// behind them, are known to refuse.
type oddities struct {
	era   mcpprobe.Era
	found []oddity
	// outputs are tools whose outputSchema has a root of another type than
	// object, which the legacy era forbids.
	outputs []string
}

// explained are the probe's warnings in words.
var explained = map[mcpprobe.WarningCode]string{
	mcpprobe.WarnNameOutsideAdvice:     "the name is not 1 to 128 of letters, digits, '_', '-' and '.': clients refuse or rename the tool",
	mcpprobe.WarnNameTooLongForClients: "the name is longer than 64 characters, which common clients refuse",
	mcpprobe.WarnDuplicateName:         "the name is listed more than once with different definitions",
	mcpprobe.WarnMalformedEntry:        "an entry has no string for a name and is left out",
	mcpprobe.WarnSchemaNotObject:       "inputSchema is missing or no object: clients refuse the whole list",
	mcpprobe.WarnNoDigest:              "the definition is too large, or has no canonical form",
	mcpprobe.WarnCursorLoop:            "pages went on without bringing anything new",
	mcpprobe.WarnListCut:               "the list is longer than the probe reads",
	mcpprobe.WarnListFailed:            "the list is declared, and could not be read",
	mcpprobe.WarnNullList:              "the list is null in place of an empty one",
}

// propertyName is what the APIs of models accept as the name of an argument.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func (o *oddities) add(code, name, detail string) {
	if len(o.found) < maxOdd {
		o.found = append(o.found, oddity{code, mcpprobe.EscapeName(name), detail})
	}
}

// tool looks at one definition.
func (o *oddities) tool(raw []byte) {
	var read struct {
		Name         string          `json:"name"`
		Description  string          `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	if json.Unmarshal(raw, &read) != nil {
		return // The probe itself says so.
	}
	if read.Description == "" {
		o.add("NoDescription", read.Name, "there is no description for a model to choose the tool by")
	}
	var input struct {
		Properties map[string]json.RawMessage `json:"properties"`
		AnyOf      json.RawMessage            `json:"anyOf"`
		OneOf      json.RawMessage            `json:"oneOf"`
		AllOf      json.RawMessage            `json:"allOf"`
	}
	if !bytes.HasPrefix(read.InputSchema, []byte("{")) || json.Unmarshal(read.InputSchema, &input) != nil {
		return
	}
	if _, err := schema.CompileInput(bytes.Clone(read.InputSchema)); err != nil {
		o.add("SchemaRefused", read.Name, "inputSchema does not compile, and clients that check it refuse the tool: "+env.Cut(env.Line(err.Error()), 200))
	}
	if input.AnyOf != nil || input.OneOf != nil || input.AllOf != nil {
		o.add("SchemaComposedAtRoot", read.Name, "inputSchema has anyOf, oneOf or allOf at its root, which the APIs of some models refuse")
	}
	for _, name := range slices.Sorted(maps.Keys(input.Properties)) {
		if !propertyName.MatchString(name) {
			o.add("ArgumentName", read.Name, fmt.Sprintf("the argument %q is not 1 to 64 of letters, digits, '_', '-' and '.', which the APIs of some models want", mcpprobe.EscapeName(name)))
		}
	}
	var output struct {
		Type string `json:"type"`
	}
	if read.OutputSchema != nil && (json.Unmarshal(read.OutputSchema, &output) != nil || output.Type != "object") {
		o.outputs = append(o.outputs, read.Name)
	}
}

// all that is odd: what the probe found, then what was seen in definitions.
func (o *oddities) all(r *mcpprobe.Report) []oddity {
	var out []oddity
	for _, w := range r.Warnings {
		out = append(out, oddity{string(w.Code), w.Name, explained[w.Code]})
	}
	if r.WarningsOmitted > 0 {
		out = append(out, oddity{"More", "", fmt.Sprintf("%d further warnings", r.WarningsOmitted)})
	}
	out = append(out, o.found...)
	if o.era == mcpprobe.EraLegacy {
		for _, name := range o.outputs {
			out = append(out, oddity{"OutputSchemaNotObject", mcpprobe.EscapeName(name), "outputSchema is not of type object, which clients of this revision refuse"})
		}
	}
	return out
}
