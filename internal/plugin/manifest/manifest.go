// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest is all that a server lists as a file: full definitions, in
// an order and a form that stay the same as long as the server says the same.
// It has no times and no names of pods, so it is fit to commit.
package manifest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// Format is what a manifest calls itself.
const Format = "mcp.espalier.dev/catalog/v1"

// MaxBytes of a file that is read.
const MaxBytes = 64 << 20

// Manifest is what a server lists.
type Manifest struct {
	Format    string  `json:"manifest"`
	Server    Server  `json:"server"`
	Tools     []Entry `json:"tools"`
	Resources []Entry `json:"resources"`
	Templates []Entry `json:"resourceTemplates"`
	Prompts   []Entry `json:"prompts"`
}

// Server is what it says of itself.
type Server struct {
	Name         string `json:"name,omitempty"`
	Title        string `json:"title,omitempty"`
	Version      string `json:"version,omitempty"`
	Instructions string `json:"instructions,omitempty"`
	// Digest of the instructions, as spec.contract pins it.
	Digest string `json:"instructionsDigest,omitempty"`
}

// Entry is one tool, resource, template or prompt.
type Entry struct {
	// ID is its name, URI or URI template.
	ID string `json:"id"`
	// Digest as spec.contract and status.tools have it; empty where the
	// definition has none, because it is too large or not sound.
	Digest string `json:"digest,omitempty"`
	// Definition as the server gives it, with its members sorted.
	Definition json.RawMessage `json:"definition"`

	// Tool has the digests of the parts.
	Tool contract.Tool `json:"-"`
}

// Take asks an endpoint for all that it lists.
func Take(ctx context.Context, p *reach.Endpoint) (*Manifest, error) {
	session, err := reach.Session(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	defer session.Close(context.WithoutCancel(ctx))
	lists, err := session.Lists(ctx)
	if err != nil {
		return nil, reach.Explain(p, err)
	}
	if len(lists.Failed) > 0 {
		return nil, env.Hint(fmt.Errorf("%s answered %s with an error", p.Name(), strings.Join(lists.Failed, ", ")), "Read the server's log.")
	}
	return Of(session.Introduction(), lists), nil
}

// Of makes the manifest of lists.
func Of(self client.Introduction, lists *client.Lists) *Manifest {
	return &Manifest{
		Format: Format,
		Server: Server{
			Name: self.Name, Title: self.Title, Version: self.Version,
			Instructions: self.Instructions, Digest: contract.OfText(self.Instructions),
		},
		Tools:     entries(lists.Tools, contract.KeyName),
		Resources: entries(lists.Resources, contract.KeyURI),
		Templates: entries(lists.Templates, contract.KeyURITemplate),
		Prompts:   entries(lists.Prompts, contract.KeyName),
	}
}

func entries(list []client.Entry, key string) []Entry {
	out := make([]Entry, 0, len(list))
	for _, e := range list {
		out = append(out, entryOf(e.ID, e.Definition, key))
	}
	slices.SortStableFunc(out, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	return out
}

func entryOf(id string, raw json.RawMessage, key string) Entry {
	e := Entry{ID: id, Definition: sorted(raw)}
	if tool, err := contract.OfEntry(raw, key); err == nil {
		e.Tool, e.Digest = tool, tool.Digest
	}
	return e
}

// sorted gives JSON with the members of its objects sorted. Numbers stay as
// they were written.
func sorted(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return json.RawMessage("null")
	}
	out, err := encode(value, "")
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

func encode(value any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return b.Bytes(), err
}

// Encode writes it, indented.
func (m *Manifest) Encode() ([]byte, error) { return encode(m, "  ") }

// Is reports whether a file is meant to be a manifest.
func Is(raw []byte) bool {
	var head struct {
		Format string `json:"manifest"`
	}
	return json.Unmarshal(raw, &head) == nil && head.Format != ""
}

// Decode reads what Encode wrote. Digests are taken anew from the definitions.
func Decode(raw []byte) (*Manifest, error) {
	if len(raw) > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, and %d are read", len(raw), MaxBytes)
	}
	m := &Manifest{}
	if json.Unmarshal(raw, m) != nil {
		return nil, errors.New("it is no manifest of a catalog")
	}
	if m.Format != Format {
		return nil, fmt.Errorf("it is a manifest of format %q, and %s is read", env.Cut(env.Line(m.Format), 80), Format)
	}
	m.Server.Digest = contract.OfText(m.Server.Instructions)
	for _, l := range []struct {
		list *[]Entry
		key  string
	}{{&m.Tools, contract.KeyName}, {&m.Resources, contract.KeyURI}, {&m.Templates, contract.KeyURITemplate}, {&m.Prompts, contract.KeyName}} {
		out := make([]Entry, 0, len(*l.list))
		for _, e := range *l.list {
			out = append(out, entryOf(e.ID, e.Definition, l.key))
		}
		slices.SortStableFunc(out, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
		*l.list = out
	}
	return m, nil
}
