// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// column of the table.
type column struct {
	head string
	cell func(Row) string
	// drop orders the columns that go when the terminal is too narrow: the
	// highest first, 0 never.
	drop int
	// cut: its cells may be cut in a narrow terminal.
	cut bool
}

func columns(namespaces, wide bool) []column {
	out := []column{
		{head: "NAME", cell: func(r Row) string { return r.Server.Name }, cut: true},
		{head: "HEALTH", cell: func(r Row) string { return string(r.Health) }},
		{head: "REASON", cell: func(r Row) string { return r.Reason }, cut: true},
		{head: "REPLICAS", cell: func(r Row) string { return r.Replicas }, drop: 1},
		{head: "TOOLS", cell: func(r Row) string { return r.Tools }, drop: 2},
		{head: "PROTOCOL", cell: func(r Row) string { return r.Protocol }, drop: 4},
		{head: "SINCE", cell: func(r Row) string { return r.Since }, drop: 3},
		{head: "PROOF", cell: func(r Row) string { return r.Proof }, drop: 2},
	}
	if namespaces {
		out = slices.Insert(out, 0, column{head: "NAMESPACE", cell: func(r Row) string { return r.Server.Namespace }, cut: true})
	}
	if wide {
		out = append(out,
			column{head: "TYPE", cell: func(r Row) string { return string(r.Server.Spec.Type) }},
			column{head: "RESOURCES", cell: func(r Row) string { return r.Resources }},
			column{head: "PROMPTS", cell: func(r Row) string { return r.Prompts }},
			column{head: "TRANSPORTS", cell: func(r Row) string { return cmp.Or(r.Server.Status.Transports, "-") }},
			column{head: "SERVER", cell: serverName},
			column{head: "URL", cell: func(r Row) string { return cmp.Or(r.Server.Status.URL, "-") }},
		)
	}
	return out
}

func serverName(r Row) string {
	s := r.Server.Status.Server
	if s == nil || s.Name == "" {
		return "-"
	}
	return strings.TrimSpace(s.Name + " " + s.Version)
}

// gap between two columns.
const gap = 3

// Table lays rows out. It keeps its columns, so that rows that come later fit.
type Table struct {
	columns []column
	widths  []int
	style   env.Style
}

// NewTable lays out rows for a terminal of width columns; 0 is no terminal,
// where nothing is cut. A wide table is never cut either: who asks for all
// wants all.
func NewTable(rows []Row, namespaces, wide bool, width int, style env.Style) *Table {
	t := &Table{columns: columns(namespaces, wide), style: style}
	t.measure(rows)
	if width == 0 || wide {
		return t
	}
	for t.total() > width && t.dropOne() {
		t.measure(rows)
	}
	t.shrink(width)
	return t
}

func (t *Table) measure(rows []Row) {
	t.widths = make([]int, len(t.columns))
	for i, c := range t.columns {
		t.widths[i] = utf8.RuneCountInString(c.head)
		for _, row := range rows {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(c.cell(row)))
		}
	}
}

func (t *Table) total() int {
	n := -gap
	for _, w := range t.widths {
		n += w + gap
	}
	return n
}

// dropOne drops the column that is missed least.
func (t *Table) dropOne() bool {
	at := -1
	for i, c := range t.columns {
		if c.drop > 0 && (at < 0 || c.drop > t.columns[at].drop) {
			at = i
		}
	}
	if at < 0 {
		return false
	}
	t.columns = slices.Delete(t.columns, at, at+1)
	return true
}

// shrink cuts the widest of the columns that may be cut until all fit.
func (t *Table) shrink(width int) {
	const least = 8
	for t.total() > width {
		at := -1
		for i, c := range t.columns {
			if c.cut && t.widths[i] > least && (at < 0 || t.widths[i] > t.widths[at]) {
				at = i
			}
		}
		if at < 0 {
			return
		}
		t.widths[at]--
	}
}

// Head prints the heads of the columns.
func (t *Table) Head(out io.Writer) {
	t.line(out, func(c column) (string, string) { return c.head, c.head })
}

// Row prints one row.
func (t *Table) Row(out io.Writer, row Row) {
	t.line(out, func(c column) (string, string) {
		text := c.cell(row)
		if c.head == "HEALTH" {
			return text, t.painted(row.Health)
		}
		return text, text
	})
}

func (t *Table) painted(health Health) string {
	switch health {
	case NotReady:
		return t.style.Bad(string(health))
	case Unknown, Degraded, Starting, Updating:
		return t.style.Unsure(string(health))
	case Ready:
		return t.style.Good(string(health))
	}
	return t.style.Faint(string(health))
}

// line prints cells; each has its text and what is printed for it, which may
// hold colours.
func (t *Table) line(out io.Writer, cell func(column) (text, printed string)) {
	var b strings.Builder
	for i, c := range t.columns {
		text, printed := cell(c)
		n := utf8.RuneCountInString(text)
		if n > t.widths[i] && c.cut {
			text = string([]rune(text)[:t.widths[i]-1]) + "…"
			printed, n = text, t.widths[i]
		}
		b.WriteString(printed)
		if i < len(t.columns)-1 {
			b.WriteString(strings.Repeat(" ", max(t.widths[i]-n, 0)+gap))
		}
	}
	fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
}
