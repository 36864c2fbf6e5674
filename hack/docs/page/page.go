// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page writes generated sections into pages that people write. A
// section stands between two comments:
//
//	<!-- generated: NAME ARGUMENTS -->
//	...
//	<!-- end -->
//
// What is outside of them is never touched.
package page

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

var marker = regexp.MustCompile(`(?m)^<!-- generated: (.+) -->\n`)

// end of a section.
const end = "<!-- end -->"

// Fill replaces the content of each section of text by what content gives for
// its name and arguments. A section without an end is an error.
func Fill(text string, content func(words []string) (string, error)) (string, error) {
	var out strings.Builder
	for {
		at := marker.FindStringSubmatchIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String(), nil
		}
		name := text[at[2]:at[3]]
		out.WriteString(text[:at[1]])
		_, rest, found := strings.Cut(text[at[1]:], end)
		if !found {
			return "", fmt.Errorf("section %q has no %s", name, end)
		}
		section, err := content(strings.Fields(name))
		if err != nil {
			return "", fmt.Errorf("section %q: %w", name, err)
		}
		out.WriteString("\n" + strings.TrimSpace(section) + "\n\n" + end)
		text = rest
	}
}

// Sections gives the words of each section's marker, in their order.
func Sections(text string) [][]string {
	var out [][]string
	for _, found := range marker.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.Fields(found[1]))
	}
	return out
}

// Section is what the section of these words holds now.
func Section(text string, words []string) string {
	_, rest, _ := strings.Cut(text, "<!-- generated: "+strings.Join(words, " ")+" -->\n")
	content, _, _ := strings.Cut(rest, end)
	return content
}

// CheckSection reports whether the section of this name in a file has content,
// and, with update, writes it there. A file without the section is not current.
func CheckSection(file, name, content string, update bool) (current bool, err error) {
	before, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	found := false
	after, err := Fill(string(before), func(words []string) (string, error) {
		if strings.Join(words, " ") == name {
			found = true
			return content, nil
		}
		return Section(string(before), words), nil
	})
	if err != nil || !found || after == string(before) {
		return found && err == nil, err
	}
	if update {
		return true, os.WriteFile(file, []byte(after), 0o644)
	}
	return false, nil
}

// Cell makes one line of text that a table's cell can hold.
func Cell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`).Replace(text)
}

// Code makes text code inside of a table's cell.
func Code(text string) string { return "`" + strings.ReplaceAll(text, "|", `\|`) + "`" }

// Table is a table of Markdown.
func Table(head []string, rows [][]string) string {
	var out strings.Builder
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	out.WriteString("|" + strings.Repeat("---|", len(head)) + "\n")
	for _, row := range rows {
		line(row)
	}
	return out.String()
}
