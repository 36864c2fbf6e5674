// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// print prints the merged list in the format that was asked for.
func (c *command) print(server string, m *merged) error {
	switch c.output {
	case "json", "yaml":
		return c.printObject(m)
	case "name":
		for _, e := range m.entries {
			fmt.Fprintln(c.Out, e.name())
		}
		return nil
	}
	if len(m.entries) == 0 && len(m.asked) > 0 {
		fmt.Fprintf(c.ErrOut, "No %s found in %s.\n", c.kind.name, m.asked[0].endpoint.Where(server))
		return nil
	}
	header, row := c.kind.header, c.kind.row
	if c.output == "wide" {
		header, row = c.kind.wideHeader, c.kind.wideRow
	}
	differ := slices.ContainsFunc(m.entries, func(e entry) bool { return e.uneven() })
	rows := make([][]string, 0, len(m.entries))
	for i := range m.entries {
		cells := row(&m.entries[i])
		if c.AllPods {
			cells = slices.Insert(cells, 1, fmt.Sprintf("%d/%d", len(m.entries[i].pods), len(m.asked)))
		}
		rows = append(rows, cells)
	}
	if c.AllPods {
		header = slices.Insert(slices.Clone(header), 1, "REPLICAS")
	}
	c.Table(header, rows)
	if differ {
		c.printDifferences(m)
	} else if c.AllPods && len(m.asked) > 1 {
		fmt.Fprintf(c.Out, "\nAll %d replicas list the same.\n", len(m.asked))
	}
	return nil
}

func (e *entry) uneven() bool { return len(e.missing) > 0 || len(e.differs) > 0 }

// printDifferences says of each entry that is not the same everywhere where it
// is not.
func (c *command) printDifferences(m *merged) {
	fmt.Fprintf(c.Out, "\n%s\n", c.Style().Bad("The replicas differ:"))
	for _, e := range m.entries {
		for _, pod := range e.missing {
			fmt.Fprintf(c.Out, "  %s is not listed by %s\n", e.name(), pod)
		}
		for _, pod := range slices.Sorted(maps.Keys(e.differs)) {
			fmt.Fprintf(c.Out, "  %s of %s is not that of %s: %s\n", e.name(), pod, e.pods[0], strings.Join(e.differs[pod], ", "))
		}
	}
}

// replica is one of several in JSON.
type replica struct {
	Pod     string            `json:"pod"`
	Entries []json.RawMessage `json:"-"`
	same    string
}

// MarshalJSON names the list as MCP does.
func (r replica) MarshalJSON() ([]byte, error) {
	pod, err := json.Marshal(r.Pod)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"pod":%s,%q:%s}`, pod, r.same, rawList(r.Entries)), nil
}

// printObject prints the raw definitions: {"tools": [...]}, or with
// --all-pods {"replicas": [{"pod": ..., "tools": [...]}]}.
func (c *command) printObject(m *merged) error {
	var out []byte
	if c.AllPods {
		replicas := []replica{}
		for _, a := range m.asked {
			replicas = append(replicas, replica{a.endpoint.Pod, raws(a.entries), c.kind.name})
		}
		var err error
		if out, err = json.Marshal(map[string]any{"replicas": replicas}); err != nil {
			return err
		}
	} else {
		out = fmt.Appendf(nil, `{%q:%s}`, c.kind.name, rawList(raws(m.entries)))
	}
	if c.output == "yaml" {
		text, err := yaml.JSONToYAML(out)
		if err != nil {
			return err
		}
		_, err = c.Out.Write(text)
		return err
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out, "", "    "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.Out, indented.String())
	return err
}

func raws(entries []entry) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(entries))
	for _, e := range entries {
		out = append(out, e.Raw)
	}
	return out
}

// rawList joins definitions as they are: no byte of them is written anew.
func rawList(list []json.RawMessage) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, raw := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(raw)
	}
	b.WriteByte(']')
	return b.Bytes()
}
