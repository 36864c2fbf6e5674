// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// entry is what the columns show of one definition.
type entry struct {
	ID string
	// key under which the ID stands.
	key  string
	Raw  json.RawMessage
	read definition
	// pods that list it so, and how the others do.
	pods, missing []string
	differs       map[string][]string // pod -> fields
}

// definition is what is shown of it. What has another type is left out.
type definition struct {
	Name         string `json:"name"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	MIMEType     string `json:"mimeType"`
	InputSchema  object `json:"inputSchema"`
	OutputSchema any    `json:"outputSchema"`
	Annotations  object `json:"annotations"`
	Arguments    []struct {
		Name     string `json:"name"`
		Required bool   `json:"required"`
	} `json:"arguments"`
	template bool
}

type object map[string]any

// UnmarshalJSON takes what is an object and leaves all else empty.
func (o *object) UnmarshalJSON(raw []byte) error {
	var value map[string]any
	if json.Unmarshal(raw, &value) == nil {
		*o = value
	}
	return nil
}

var tools = kind{
	name: "tools", methods: []string{mcp.MethodToolsList},
	of:     func(l *client.Lists) []entry { return entries(l.Tools, contract.KeyName, false) },
	header: []string{"NAME", "ARGUMENTS", "DESCRIPTION"},
	row: func(e *entry) []string {
		return []string{e.name(), env.Cut(e.arguments(false), 48), e.description()}
	},
	wideHeader: []string{"NAME", "ARGUMENTS", "RESULT", "HINTS", "TITLE", "DESCRIPTION"},
	wideRow: func(e *entry) []string {
		result := "content"
		if e.read.OutputSchema != nil {
			result = "structured"
		}
		return []string{e.name(), e.arguments(true), result, e.hints(), env.Line(e.read.Title), e.description()}
	},
}

var resources = kind{
	name: "resources", methods: []string{mcp.MethodResourcesList, mcp.MethodResourceTemplates},
	of: func(l *client.Lists) []entry {
		return append(entries(l.Resources, contract.KeyURI, false), entries(l.Templates, contract.KeyURITemplate, true)...)
	},
	header: []string{"URI", "NAME", "TYPE", "DESCRIPTION"},
	row: func(e *entry) []string {
		return []string{e.name(), env.Line(e.read.Name), orNone(env.Line(e.read.MIMEType)), e.description()}
	},
	wideHeader: []string{"URI", "KIND", "NAME", "TYPE", "TITLE", "DESCRIPTION"},
	wideRow: func(e *entry) []string {
		sort := "resource"
		if e.read.template {
			sort = "template"
		}
		return []string{e.name(), sort, env.Line(e.read.Name), orNone(env.Line(e.read.MIMEType)), env.Line(e.read.Title), e.description()}
	},
}

var prompts = kind{
	name: "prompts", methods: []string{mcp.MethodPromptsList},
	of:     func(l *client.Lists) []entry { return entries(l.Prompts, contract.KeyName, false) },
	header: []string{"NAME", "ARGUMENTS", "DESCRIPTION"},
	row: func(e *entry) []string {
		return []string{e.name(), e.promptArguments(), e.description()}
	},
	wideHeader: []string{"NAME", "ARGUMENTS", "TITLE", "DESCRIPTION"},
	wideRow: func(e *entry) []string {
		return []string{e.name(), e.promptArguments(), env.Line(e.read.Title), e.description()}
	},
}

func entries(list []client.Entry, key string, template bool) []entry {
	out := make([]entry, 0, len(list))
	for _, one := range list {
		e := entry{ID: one.ID, key: key, Raw: one.Definition}
		_ = json.Unmarshal(one.Definition, &e.read) // What cannot be read is not shown.
		e.read.template = template
		out = append(out, e)
	}
	return out
}

func orNone(text string) string { return cmp.Or(text, "-") }

// name of the entry, fit for a line.
func (e *entry) name() string { return env.Line(e.ID) }

func (e *entry) description() string { return env.Line(e.read.Description) }

// arguments of a tool: those that are required, and the others in brackets.
func (e *entry) arguments(types bool) string {
	properties, _ := e.read.InputSchema["properties"].(map[string]any)
	required := map[string]bool{}
	list, _ := e.read.InputSchema["required"].([]any)
	for _, name := range list {
		if text, ok := name.(string); ok {
			required[text] = true
		}
	}
	var first, rest []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		text := env.Line(name)
		if types {
			if schema, _ := properties[name].(map[string]any); schema != nil {
				if t, ok := schema["type"].(string); ok {
					text += "=" + env.Line(t)
				}
			}
		}
		if required[name] {
			first = append(first, text)
		} else {
			rest = append(rest, "["+text+"]")
		}
	}
	return orNone(strings.Join(append(first, rest...), " "))
}

func (e *entry) promptArguments() string {
	var out []string
	for _, a := range e.read.Arguments {
		name := env.Line(a.Name)
		if !a.Required {
			name = "[" + name + "]"
		}
		out = append(out, name)
	}
	return orNone(strings.Join(out, " "))
}

// hints that the server gives, which nobody needs to believe.
func (e *entry) hints() string {
	var out []string
	for _, h := range []struct{ key, word string }{
		{"readOnlyHint", "read-only"}, {"destructiveHint", "destructive"}, {"idempotentHint", "idempotent"}, {"openWorldHint", "open-world"},
	} {
		if yes, _ := e.read.Annotations[h.key].(bool); yes {
			out = append(out, h.word)
		}
	}
	return orNone(strings.Join(out, ","))
}

// merge makes one list of what the replicas answered, in the order of the
// first that answered; the definition of the first that has an entry stands
// for it.
func merge(answers []answer) *merged {
	m := &merged{}
	at := map[string]int{}
	for _, a := range answers {
		if a.err != nil {
			continue
		}
		m.asked = append(m.asked, a)
		for _, one := range a.entries {
			if i, known := at[one.ID]; known {
				m.entries[i].compare(&one, a.endpoint.Name())
				continue
			}
			at[one.ID] = len(m.entries)
			one.pods = []string{a.endpoint.Name()}
			m.entries = append(m.entries, one)
		}
	}
	for i := range m.entries {
		e := &m.entries[i]
		for _, a := range m.asked {
			name := a.endpoint.Name()
			if !slices.Contains(e.pods, name) && e.differs[name] == nil {
				e.missing = append(e.missing, name)
			}
		}
	}
	return m
}

// merged are the lists of all replicas as one.
type merged struct {
	entries []entry
	asked   []answer
}

// compare notes that pod lists the entry too, as it is or otherwise.
func (e *entry) compare(other *entry, pod string) {
	mine, errMine := contract.OfEntry(e.Raw, e.key)
	theirs, errTheirs := contract.OfEntry(other.Raw, other.key)
	switch {
	case errMine == nil && errTheirs == nil && mine.Digest == theirs.Digest, string(e.Raw) == string(other.Raw):
		e.pods = append(e.pods, pod)
		return
	case e.differs == nil:
		e.differs = map[string][]string{}
	}
	fields := contract.Differing(mine.Fields, theirs.Fields)
	if len(fields) == 0 {
		fields = []string{"the definition"}
	}
	e.differs[pod] = fields
}
