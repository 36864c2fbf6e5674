// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogdocs

import (
	"regexp"
	"strings"

	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// Foreign text is text: it makes no heading, list, link, image, table, HTML or
// footnote of its own, and no page can be closed from within it. CommonMark
// takes a backslash before any punctuation.

var (
	marks = strings.NewReplacer(
		`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`, "|", `\|`, "~", `\~`,
		"&", `\&`, "$", `\$`, "@", `\@`, "!", `\!`, "://", `\://`, "^", `\^`, "{", `\{`, "}", `\}`,
	)
	// GitHub makes links of what begins with www.
	web = regexp.MustCompile(`(?i)\bwww\.`)
	// opening marks of a line: headings, lists, rules, definitions, numbered
	// lists.
	opening = regexp.MustCompile(`^(?:[#+=:-]|[0-9]{1,9}[.)])`)
)

// inline is text within a line.
func inline(text string) string {
	return web.ReplaceAllStringFunc(marks.Replace(env.Line(text)), func(w string) string { return w[:3] + `\.` })
}

// line is text that begins a line.
func line(text string) string {
	out := inline(text)
	if open := opening.FindString(out); open != "" {
		at := len(open) - 1
		out = out[:at] + `\` + out[at:]
	}
	return out
}

// paragraphs is text of several lines. Empty lines part paragraphs, and no line
// is indented, which would make it code.
func paragraphs(text string) string {
	var out []string
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		part = line(part)
		if part == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, part)
	}
	return strings.TrimSpace(strings.Join(out, "\n"))
}

// code is text in a span of code.
func code(text string) string {
	text = env.Line(text)
	if text == "" {
		return ""
	}
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if strings.Contains(text, "`") || text[0] == ' ' {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// cellCode is code in a table, where a bar ends a cell even there.
func cellCode(text string) string { return strings.ReplaceAll(code(text), "|", `\|`) }
