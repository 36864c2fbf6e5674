// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// minLast is the least width that the last column of a table is cut to.
const minLast = 12

// Table prints rows in columns. On a terminal the last column is cut so that
// lines fit; elsewhere nothing is. Cells are to be of one printable line.
func (e *Env) Table(header []string, rows [][]string) {
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	last := len(header) - 1
	room := 0
	if width := e.Width(); width > 0 {
		room = width
		for _, w := range widths[:last] {
			room -= w + 3
		}
		room = max(room, minLast)
	}
	style := e.Style()
	for n, row := range append([][]string{header}, rows...) {
		var line strings.Builder
		for i, cell := range row {
			if i == last {
				line.WriteString(Cut(cell, room))
				continue
			}
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+3))
		}
		text := strings.TrimRight(line.String(), " ")
		if n == 0 {
			text = style.Strong(text)
		}
		fmt.Fprintln(e.Out, text)
	}
}

// Cut shortens text to width characters, with a mark that it did; 0 is no
// bound.
func Cut(text string, width int) string {
	runes := []rune(text)
	if width <= 0 || len(runes) <= width {
		return text
	}
	return string(runes[:width-1]) + "…"
}
