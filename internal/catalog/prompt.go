// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/json"
	"fmt"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/expression"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// promptDefinition is the wire object of a declared prompt.
type promptDefinition struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Icons       []mcpv1.Icon    `json:"icons,omitempty"`
	Arguments   []wireArgument  `json:"arguments,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

type wireArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// CompilePrompt compiles an MCPPrompt.
func CompilePrompt(p *mcpv1.MCPPrompt) *Compiled {
	c := begin(p, Prompts, PromptName(p), nil)
	if v := firstRefusal(
		func() Verdict { return checkMeta(p.Spec.Meta) },
		func() Verdict { return checkExpressions(promptExpressions(p)) },
	); !v.Accepted {
		c.Verdict = v
		return c
	}
	raw, err := encodePrompt(p)
	if !c.digest(raw, err, contract.KeyName, mcpv1.ReasonInvalidMeta, "spec.meta") {
		return c
	}
	c.Prompt = promptEntry(p, raw)
	c.EntryDigest = entryDigest(c.Prompt)
	c.Verdict = accepted(mcpv1.ReasonAccepted, "The prompt is sound.")
	return c
}

// PromptName is the prompt's name on the wire.
func PromptName(p *mcpv1.MCPPrompt) string {
	if p.Spec.Name != "" {
		return p.Spec.Name
	}
	return p.Name
}

func encodePrompt(p *mcpv1.MCPPrompt) (json.RawMessage, error) {
	spec := &p.Spec
	d := promptDefinition{Name: PromptName(p), Title: spec.Title, Description: spec.Description, Icons: spec.Icons}
	for _, a := range spec.Arguments {
		d.Arguments = append(d.Arguments, wireArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: isTrue(a.Required)})
	}
	if !empty(spec.Meta) {
		d.Meta = spec.Meta.Raw
	}
	return encodePlain(d)
}

func isTrue(b *bool) bool { return b != nil && *b }

func promptEntry(p *mcpv1.MCPPrompt, raw json.RawMessage) *serverconfig.Prompt {
	out := &serverconfig.Prompt{Name: PromptName(p), Definition: raw, Source: "mcpprompt/" + p.Name, Metadata: p.Spec.Metadata}
	for _, a := range p.Spec.Arguments {
		out.Arguments = append(out.Arguments, serverconfig.Variable{Name: a.Name, Required: isTrue(a.Required), Completions: a.Completions})
	}
	for _, m := range p.Spec.Messages {
		c := m.Content
		out.Messages = append(out.Messages, serverconfig.Message{Role: wireRole(m.Role), Content: serverconfig.PromptContent{
			Type: serverconfig.ContentType(c.Type), MIMEType: c.MIMEType, URI: c.URI, URIExpression: c.URIExpression,
			Text: c.Text, Blob: c.Blob, Expression: c.Expression,
		}})
	}
	return out
}

func promptExpressions(p *mcpv1.MCPPrompt) []located {
	var all []located
	for i, m := range p.Spec.Messages {
		where := fmt.Sprintf("spec.messages[%d].content", i)
		all = append(all,
			located{where + ".expression", expression.Call, m.Content.Expression, contentKind(m.Content.Type)},
			located{where + ".uriExpression", expression.Call, m.Content.URIExpression, expression.String})
	}
	return all
}
