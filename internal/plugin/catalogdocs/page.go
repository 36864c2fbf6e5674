// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogdocs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
)

// definition is what the page shows of an entry. What has another type is left
// out: a page is no judge.
type definition struct {
	Name         text            `json:"name"`
	Title        text            `json:"title"`
	Description  text            `json:"description"`
	MIMEType     text            `json:"mimeType"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  annotations     `json:"annotations"`
	Arguments    arguments       `json:"arguments"`
}

// text takes a string and nothing else.
type text string

// UnmarshalJSON leaves what is no string empty.
func (t *text) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		*t = text(s)
	}
	return nil
}

type annotations map[string]json.RawMessage

// UnmarshalJSON leaves what is no object empty.
func (a *annotations) UnmarshalJSON(raw []byte) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) == nil {
		*a = m
	}
	return nil
}

type argument struct {
	Name        text            `json:"name"`
	Description text            `json:"description"`
	Required    json.RawMessage `json:"required"`
}

type arguments []argument

// UnmarshalJSON leaves what is no list of objects empty.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	var list []argument
	if json.Unmarshal(raw, &list) == nil {
		*a = list
	}
	return nil
}

func read(e manifest.Entry) definition {
	var d definition
	if json.Unmarshal(e.Definition, &d) != nil {
		return definition{}
	}
	return d
}

// page is the catalog in Markdown. name is what the user called the server.
func page(name string, m *manifest.Manifest) string {
	var b strings.Builder
	title := cmp.Or(m.Server.Title, m.Server.Name, name)
	fmt.Fprintf(&b, "# %s\n", inline(title))
	facts := []string{env.Count(len(m.Tools), "tool"), env.Count(len(m.Resources), "resource"), env.Count(len(m.Templates), "resource template"), env.Count(len(m.Prompts), "prompt")}
	fmt.Fprintf(&b, "\n%s.", strings.Join(facts, ", "))
	if m.Server.Name != "" {
		fmt.Fprintf(&b, " The server calls itself %s", code(m.Server.Name))
		if m.Server.Version != "" {
			fmt.Fprintf(&b, ", version %s", code(m.Server.Version))
		}
		b.WriteString(".")
	}
	b.WriteString("\n")
	if m.Server.Instructions != "" {
		fmt.Fprintf(&b, "\n## Instructions\n\n%s\n", paragraphs(m.Server.Instructions))
	}
	tools(&b, m.Tools)
	resources(&b, "Resources", m.Resources)
	resources(&b, "Resource templates", m.Templates)
	prompts(&b, m.Prompts)
	return b.String()
}

// head is what each entry begins with.
func head(b *strings.Builder, id string, d definition) {
	fmt.Fprintf(b, "\n### %s\n", code(id))
	if d.Title != "" {
		fmt.Fprintf(b, "\n**%s**\n", inline(string(d.Title)))
	}
	if d.Description != "" {
		fmt.Fprintf(b, "\n%s\n", paragraphs(string(d.Description)))
	}
}

func tools(b *strings.Builder, list []manifest.Entry) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n## Tools\n")
	for _, e := range list {
		d := read(e)
		head(b, e.ID, d)
		if d.Title == "" {
			var title text
			if raw, ok := d.Annotations["title"]; ok && json.Unmarshal(raw, &title) == nil && title != "" {
				fmt.Fprintf(b, "\n**%s**\n", inline(string(title)))
			}
		}
		if h := hints(d.Annotations); h != "" {
			fmt.Fprintf(b, "\nIt says of itself: %s.\n", h)
		}
		rows := fields(d.InputSchema)
		if len(rows) == 0 {
			b.WriteString("\nIt takes no arguments.\n")
		} else {
			table(b, "argument", rows, true)
		}
		if rows := fields(d.OutputSchema); len(rows) > 0 {
			b.WriteString("\nIt gives:\n")
			table(b, "member", rows, false)
		}
	}
}

// hints of a tool in words, in a fixed order.
func hints(a annotations) string {
	var out []string
	for _, h := range []struct{ key, yes, no string }{
		{"readOnlyHint", "changes nothing", "changes things"},
		{"destructiveHint", "may destroy", "destroys nothing"},
		{"idempotentHint", "a second call changes nothing more", "a second call may change more"},
		{"openWorldHint", "reaches beyond the server", "stays within the server"},
	} {
		switch string(a[h.key]) {
		case "true":
			out = append(out, h.yes)
		case "false":
			out = append(out, h.no)
		}
	}
	return strings.Join(out, ", ")
}

// table of what a schema says. required tells which are.
func table(b *strings.Builder, what string, rows []field, required bool) {
	if required {
		fmt.Fprintf(b, "\n| %s | type | needed | what |\n|---|---|---|---|\n", what)
	} else {
		fmt.Fprintf(b, "\n| %s | type | what |\n|---|---|---|\n", what)
	}
	for _, r := range rows {
		fmt.Fprintf(b, "| %s | %s |", cellCode(r.path), inline(r.kind))
		if required {
			fmt.Fprintf(b, " %s |", map[bool]string{true: "yes", false: "no"}[r.required])
		}
		fmt.Fprintf(b, " %s |\n", inline(r.what))
	}
}

func resources(b *strings.Builder, title string, list []manifest.Entry) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n", title)
	for _, e := range list {
		d := read(e)
		head(b, e.ID, d)
		var facts []string
		if d.Name != "" {
			facts = append(facts, "name "+code(string(d.Name)))
		}
		if d.MIMEType != "" {
			facts = append(facts, "type "+code(string(d.MIMEType)))
		}
		if len(facts) > 0 {
			fmt.Fprintf(b, "\nIts %s.\n", strings.Join(facts, ", "))
		}
	}
}

func prompts(b *strings.Builder, list []manifest.Entry) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\n## Prompts\n")
	for _, e := range list {
		d := read(e)
		head(b, e.ID, d)
		if len(d.Arguments) == 0 {
			b.WriteString("\nIt takes no arguments.\n")
			continue
		}
		var rows []field
		for _, a := range d.Arguments {
			rows = append(rows, field{path: string(a.Name), kind: "string", what: string(a.Description), required: string(a.Required) == "true"})
		}
		table(b, "argument", rows, true)
	}
}
