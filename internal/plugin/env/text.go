// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

// Line makes text of a peer fit for one line of a terminal: white space becomes
// a blank, and what could move the cursor or turn the direction of writing is
// written as an escape.
func Line(text string) string {
	return printable(strings.Join(strings.Fields(text), " "), func(rune) bool { return false })
}

// Lines does so and keeps line ends and tabs.
func Lines(text string) string {
	return printable(strings.ReplaceAll(text, "\r\n", "\n"), func(r rune) bool { return r == '\n' || r == '\t' })
}

func printable(text string, kept func(rune) bool) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case kept(r) || unicode.IsGraphic(r) && (r == ' ' || !unicode.IsSpace(r)):
			b.WriteString(text[:size])
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[size:]
	}
	return b.String()
}

// Count says how many there are of what, a word that takes an s.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// OutTerminal reports whether the command prints to a terminal, ErrTerminal and
// InTerminal the same of the standard error and input.
func (e *Env) OutTerminal() bool { return isTerminal(e.Out) }

// ErrTerminal reports whether messages go to a terminal.
func (e *Env) ErrTerminal() bool { return isTerminal(e.ErrOut) }

// InTerminal reports whether a person can be asked.
func (e *Env) InTerminal() bool { return isTerminal(e.In) }

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
