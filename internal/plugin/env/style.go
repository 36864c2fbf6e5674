// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"

	"golang.org/x/term"
)

// Style colours words, on a terminal that wants it.
type Style struct{ on bool }

// Style of what the command prints: colours only on a terminal, and not where
// NO_COLOR is set (no-color.org) or the terminal is dumb.
func (e *Env) Style() Style {
	on := e.OutTerminal() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return Style{on}
}

// Width of the terminal that the command prints to, in columns; 0 when it is
// none, and lines are not to be cut.
func (e *Env) Width() int {
	file, ok := e.Out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

func (s Style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Good is what is as it should be.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Bad is what is not.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Unsure is what is not known, or under way.
func (s Style) Unsure(text string) string { return s.paint("33", text) }

// Strong is what to read first.
func (s Style) Strong(text string) string { return s.paint("1", text) }

// Faint is what to read last.
func (s Style) Faint(text string) string { return s.paint("2", text) }
