// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package promise

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/espalier-dev/espalier/internal/contract"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
)

// contextLines around a change in a diff.
const contextLines = 3

// differ writes differences.
type differ struct {
	out   io.Writer
	style env.Style
	// drifted counts what is not as it was pinned.
	drifted int
}

// compare prints what differs. The error is env.No where something does.
func (c *command) compare(old *pinned, now *manifest.Manifest) error {
	d := &differ{out: c.Out, style: c.Style()}
	d.instructions(old, now)
	met := 0
	for _, pin := range old.pins {
		at := slices.IndexFunc(now.Tools, func(e manifest.Entry) bool { return e.ID == pin.Name })
		if at < 0 {
			d.drifted++
			d.title("Tool %s is gone.", pin.Name)
			continue
		}
		if !d.tool(pin, old.definition(pin.Name), now.Tools[at]) {
			met++
		}
	}
	var added []string
	for _, e := range now.Tools {
		if !slices.ContainsFunc(old.pins, func(p contract.Pin) bool { return p.Name == e.ID }) {
			added = append(added, env.Line(e.ID))
		}
	}
	if len(added) > 0 {
		fmt.Fprintf(c.Out, "Not pinned: %s.\n", strings.Join(added, ", "))
	}
	if len(old.upstream) > 0 {
		fmt.Fprintf(c.ErrOut, "What upstreams give cannot be seen from here; the condition ContractMet tells of it: %s.\n", env.Line(strings.Join(old.upstream, ", ")))
	}
	if d.drifted > 0 {
		fmt.Fprintf(c.ErrOut, "%d of what was pinned differs.\n", d.drifted)
		return env.No
	}
	fmt.Fprintf(c.ErrOut, "All is as it was pinned: %d tools.\n", met)
	return nil
}

// definition that was pinned, nil where there are digests alone.
func (p *pinned) definition(name string) *manifest.Entry {
	if p.full == nil {
		return nil
	}
	for i := range p.full.Tools {
		if p.full.Tools[i].ID == name {
			return &p.full.Tools[i]
		}
	}
	return nil
}

func (d *differ) title(format, name string) {
	fmt.Fprintln(d.out, d.style.Strong(fmt.Sprintf(format, env.Line(name))))
}

// instructions that differ. A contract without them pins nothing of them;
// definitions without them say that there are none.
func (d *differ) instructions(old *pinned, now *manifest.Manifest) {
	if old.instructions == now.Server.Digest || old.full == nil && old.instructions == "" {
		return
	}
	d.drifted++
	d.title("The instructions differ.%s", "")
	if old.full == nil {
		d.digests(old.instructions, now.Server.Digest)
		return
	}
	d.lines("instructions", lines(old.full.Server.Instructions), lines(now.Server.Instructions))
}

// tool reports whether one is not what was pinned, and prints how.
func (d *differ) tool(pin contract.Pin, old *manifest.Entry, now manifest.Entry) bool {
	if pin.Digest == "" && pin.Fields == (contract.Fields{}) {
		if old == nil || bytes.Equal(old.Definition, now.Definition) {
			return false // Only its upstream is pinned, or it has no digest and is the same.
		}
		d.drifted++
		d.title("Tool %s differs.", pin.Name)
		d.lines("definition", pretty(old.Definition), pretty(now.Definition))
		return true
	}
	if now.Digest == "" {
		d.drifted++
		d.title("Tool %s has a definition that is too large or not sound JSON.", pin.Name)
		return true
	}
	parts, broken := pin.Broken(now.Tool)
	if !broken {
		return false
	}
	d.drifted++
	if len(parts) == 0 {
		d.title("Tool %s differs.", pin.Name)
		d.digests(pin.Digest, now.Digest)
		return true
	}
	d.title("Tool %s differs in "+strings.Join(parts, ", ")+".", pin.Name)
	for _, part := range parts {
		if old == nil {
			fmt.Fprintf(d.out, "%s\n", part)
			d.digests(digestOf(pin.Fields, part), digestOf(now.Tool.Fields, part))
			continue
		}
		d.lines(part, partOf(old.Definition, part), partOf(now.Definition, part))
	}
	return true
}

func (d *differ) digests(old, now string) {
	absent := func(s string) string {
		if s == "" {
			return "(absent)"
		}
		return s
	}
	fmt.Fprintln(d.out, d.style.Bad("  - "+absent(env.Line(old))))
	fmt.Fprintln(d.out, d.style.Good("  + "+absent(env.Line(now))))
}

// lines prints a unified diff.
func (d *differ) lines(what string, old, now []string) {
	fmt.Fprintf(d.out, "%s\n", what)
	diff := difflib.NewMatcher(old, now)
	for _, group := range diff.GetGroupedOpCodes(contextLines) {
		if len(group) > 0 && (group[0].I1 > 0 || group[len(group)-1].I2 < len(old)) {
			fmt.Fprintln(d.out, d.style.Faint(fmt.Sprintf("  @@ line %d @@", group[0].I1+1)))
		}
		for _, op := range group {
			if op.Tag == 'e' {
				for _, line := range old[op.I1:op.I2] {
					fmt.Fprintln(d.out, "    "+line)
				}
				continue
			}
			for _, line := range old[op.I1:op.I2] {
				fmt.Fprintln(d.out, d.style.Bad("  - "+line))
			}
			for _, line := range now[op.J1:op.J2] {
				fmt.Fprintln(d.out, d.style.Good("  + "+line))
			}
		}
	}
}

// lines of a text, none of an empty one. Each is fit for a terminal.
func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.ReplaceAll(env.Lines(text), "\t", "    "), "\n")
}

// pretty is JSON in lines; a string is its text.
func pretty(raw json.RawMessage) []string {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return lines(text)
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return nil
	}
	return lines(b.String())
}

// named are the parts of a definition that have a name in contract.Fields.
var named = []string{"title", "description", "inputSchema", "outputSchema", "annotations"}

// partOf a definition, in lines. Its members are sorted.
func partOf(definition json.RawMessage, part string) []string {
	var members map[string]json.RawMessage
	if json.Unmarshal(definition, &members) != nil {
		return nil
	}
	if part != "other" {
		return pretty(members[part])
	}
	for _, key := range append([]string{contract.KeyName, "icons"}, named...) {
		delete(members, key)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if len(members) == 0 || e.Encode(members) != nil {
		return nil
	}
	return pretty(bytes.TrimSpace(b.Bytes()))
}

func digestOf(f contract.Fields, part string) string {
	return map[string]string{
		"title": f.Title, "description": f.Description, "inputSchema": f.InputSchema,
		"outputSchema": f.OutputSchema, "annotations": f.Annotations, "other": f.Other,
	}[part]
}
