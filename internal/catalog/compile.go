// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Compiled is what one MCPTool comes to by itself. It depends on the tool's
// name, creation and spec only, and is not changed once made.
type Compiled struct {
	// Object is the MCPTool's metadata.name; Created when it was made. They
	// decide conflicts.
	Object  string
	Created time.Time
	// Suspended hides the tool.
	Suspended bool
	// Verdict on the spec.
	Verdict Verdict
	// Refs are the Secrets and ConfigMaps that it names, sorted.
	Refs []Ref
	// Entry is the tool in the catalog file; nil when refused.
	Entry *serverconfig.Tool
	// EntryDigest tells versions of Entry apart, what is not on the wire
	// included.
	EntryDigest string
	// Wire is the digest of the definition as a client sees it.
	Wire contract.Tool
	// vars of the server's filter.
	vars map[string]any
}

// Name of the tool on the wire.
func (c *Compiled) Name() string { return c.Wire.Name }

// CompileTool compiles tool. The result holds a verdict, never an error: a
// broken tool harms no other.
func CompileTool(tool *mcpv1.MCPTool) *Compiled {
	c := &Compiled{
		Object:    tool.Name,
		Created:   tool.CreationTimestamp.Time,
		Suspended: tool.Spec.Suspend != nil && *tool.Spec.Suspend,
		Wire:      contract.Tool{Name: ToolName(tool)},
		Refs:      SortRefs(handlerRefs(tool)),
	}
	if v := checkTool(tool); !v.Accepted {
		c.Verdict = v
		return c
	}
	raw, err := encodeDefinition(tool)
	if err == nil {
		c.Wire, err = contract.Of(raw)
	}
	if err != nil {
		c.Verdict = refused(mcpv1.ReasonInvalidInputSchema, "The definition cannot be encoded: %v. Check inputSchema, outputSchema and meta.", err)
		c.Wire.Name = ToolName(tool)
		return c
	}
	c.Entry = entry(tool, raw)
	c.EntryDigest = entryDigest(c.Entry)
	c.vars = filterVars(raw, tool)
	c.Verdict = acceptance(tool)
	return c
}

func acceptance(tool *mcpv1.MCPTool) Verdict {
	switch {
	case Handler(tool) == "none":
		return accepted(mcpv1.ReasonNoExecutor, `The tool is listed; a call answers "no executor configured". Set http or expression.`)
	case len(ToolName(tool)) > maxClientName:
		return accepted(mcpv1.ReasonAccepted, "The tool is sound. Its name has more than 64 characters, which some clients refuse.")
	default:
		return accepted(mcpv1.ReasonAccepted, "The tool is sound.")
	}
}

// checkTool is a chain of checks; the first refusal is the verdict.
func checkTool(tool *mcpv1.MCPTool) Verdict {
	for _, check := range []func(*mcpv1.MCPTool) Verdict{checkSchemas, checkMeta, checkHTTP, checkExpressions} {
		if v := check(tool); !v.Accepted {
			return v
		}
	}
	return Verdict{Accepted: true}
}

func checkSchemas(tool *mcpv1.MCPTool) Verdict {
	if in := tool.Spec.InputSchema; !empty(in) {
		if _, err := schema.CompileInput(in.Raw); err != nil {
			return refused(mcpv1.ReasonInvalidInputSchema, "spec.inputSchema: %v.", err)
		}
	}
	if out := tool.Spec.OutputSchema; !empty(out) {
		if _, err := schema.Compile(out.Raw); err != nil {
			return refused(mcpv1.ReasonInvalidOutputSchema, "spec.outputSchema: %v.", err)
		}
	}
	return Verdict{Accepted: true}
}

func checkMeta(tool *mcpv1.MCPTool) Verdict {
	if empty(tool.Spec.Meta) {
		return Verdict{Accepted: true}
	}
	const maxMeta = 64 << 10
	raw := bytes.TrimSpace(tool.Spec.Meta.Raw)
	if len(raw) > maxMeta {
		return refused(mcpv1.ReasonInvalidMeta, "spec.meta has %d bytes; at most %d are served.", len(raw), maxMeta)
	}
	if raw[0] != '{' {
		return refused(mcpv1.ReasonInvalidMeta, "spec.meta is not an object. Give keys and values.")
	}
	return Verdict{Accepted: true}
}

func entryDigest(e *serverconfig.Tool) string {
	raw, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
