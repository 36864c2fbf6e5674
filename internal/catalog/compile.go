// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/schema"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Compiled is what one registration comes to by itself. It depends on the
// object's name, creation and spec only, and is not changed once made.
type Compiled struct {
	ID ID
	// Created is when the object was made. With its name that decides
	// conflicts.
	Created time.Time
	// Suspended hides it.
	Suspended bool
	// Verdict on the spec.
	Verdict Verdict
	// Refs are the Secrets and ConfigMaps that it names, sorted.
	Refs []Ref
	// List that it belongs to.
	List List
	// One of these is its entry in the catalog file; none when refused. A
	// Resource is a template if List says so.
	Tool     *serverconfig.Tool
	Resource *serverconfig.Resource
	Prompt   *serverconfig.Prompt
	// EntryDigest tells versions of the entry apart, what is not on the wire
	// included.
	EntryDigest string
	// Wire is the digest of the definition as a client sees it; its Name is
	// the identity in List.
	Wire contract.Tool
	// vars of the server's filter; of tools only.
	vars map[string]any
}

// Name is the identity in the list: a name, a URI or a URI template.
func (c *Compiled) Name() string { return c.Wire.Name }

// Compile compiles r. The result holds a verdict, never an error: what is
// broken harms nothing else.
func Compile(r mcpv1.Registration) *Compiled {
	switch r := r.(type) {
	case *mcpv1.MCPResource:
		return CompileResource(r)
	case *mcpv1.MCPPrompt:
		return CompilePrompt(r)
	case *mcpv1.MCPTool:
		return CompileTool(r)
	default:
		panic(fmt.Sprintf("%T is no kind of registration", r))
	}
}

// begin gives what does not depend on the kind.
func begin(r mcpv1.Registration, list List, identity string, refs []Ref) *Compiled {
	suspend := r.GetRegistrationSpec().Suspend
	return &Compiled{
		ID:        IDOf(r),
		Created:   r.GetCreationTimestamp().Time,
		Suspended: suspend != nil && *suspend,
		List:      list,
		Wire:      contract.Tool{Name: identity},
		Refs:      SortRefs(refs),
	}
}

// digest takes the digest of the definition under key. It reports false after
// it has refused one that has none.
func (c *Compiled) digest(raw json.RawMessage, err error, key, reason, check string) bool {
	identity := c.Wire.Name
	if err == nil {
		c.Wire, err = contract.OfEntry(raw, key)
	}
	if err != nil {
		c.Verdict = refused(reason, "The definition cannot be encoded: %v. Check %s.", err, check)
		c.Wire = contract.Tool{Name: identity}
		return false
	}
	return true
}

// CompileTool compiles an MCPTool.
func CompileTool(tool *mcpv1.MCPTool) *Compiled {
	c := begin(tool, Tools, ToolName(tool), handlerRefs(tool))
	if v := checkTool(tool); !v.Accepted {
		c.Verdict = v
		return c
	}
	raw, err := encodeDefinition(tool)
	if !c.digest(raw, err, contract.KeyName, mcpv1.ReasonInvalidInputSchema, "inputSchema, outputSchema and meta") {
		return c
	}
	c.Tool = entry(tool, raw)
	c.EntryDigest = entryDigest(c.Tool)
	c.vars = filterVars(raw, tool)
	c.Verdict = acceptance(tool)
	return c
}

func acceptance(tool *mcpv1.MCPTool) Verdict {
	switch {
	case Handler(tool) == "none":
		return accepted(mcpv1.ReasonNoExecutor, `The tool is listed; a call answers "no executor configured". Set http, expression or upstream.`)
	case len(ToolName(tool)) > maxClientName:
		return accepted(mcpv1.ReasonAccepted, "The tool is sound. Its name has more than 64 characters, which some clients refuse.")
	default:
		return accepted(mcpv1.ReasonAccepted, "The tool is sound.")
	}
}

// firstRefusal runs a chain of checks; the first refusal is the verdict.
func firstRefusal(checks ...func() Verdict) Verdict {
	for _, check := range checks {
		if v := check(); !v.Accepted {
			return v
		}
	}
	return Verdict{Accepted: true}
}

func checkTool(tool *mcpv1.MCPTool) Verdict {
	return firstRefusal(
		func() Verdict { return checkSchemas(tool) },
		func() Verdict { return checkMeta(tool.Spec.Meta) },
		func() Verdict { return checkHTTP(tool) },
		func() Verdict { return checkExpressions(toolExpressions(tool)) },
	)
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

func checkMeta(meta *mcpv1.JSON) Verdict {
	if empty(meta) {
		return Verdict{Accepted: true}
	}
	const maxMeta = 64 << 10
	raw := bytes.TrimSpace(meta.Raw)
	if len(raw) > maxMeta {
		return refused(mcpv1.ReasonInvalidMeta, "spec.meta has %d bytes; at most %d are served.", len(raw), maxMeta)
	}
	if raw[0] != '{' {
		return refused(mcpv1.ReasonInvalidMeta, "spec.meta is not an object. Give keys and values.")
	}
	return Verdict{Accepted: true}
}

// entryDigest of an entry of the catalog file.
func entryDigest(entry any) string {
	raw, err := json.Marshal(entry)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
