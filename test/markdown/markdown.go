// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package markdown reads as much of Markdown as tests of the documentation
// need: links, anchors and fenced blocks.
package markdown

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Page is a file of Markdown.
type Page struct {
	// Path below the root, with slashes.
	Path string
	// Prose are the lines outside of code, the others empty: the number of a
	// line is its index and one.
	Prose []string
	// Blocks of code between fences, in their order.
	Blocks []Block
}

// Block is code between fences.
type Block struct {
	// Info are the words behind the opening fence: a language, and more.
	Info []string
	Text string
	// Line of the opening fence, from 1.
	Line int
}

// Link is a reference to another place.
type Link struct {
	Target string
	Line   int
}

// skipped folders hold nothing of ours.
var skipped = map[string]bool{".git": true, "bin": true, "build": true, "dist": true, "node_modules": true}

// Pages reads all pages below root.
func Pages(root string) ([]*Page, error) {
	var out []*Page
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped[entry.Name()]:
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		page, err := Parse(filepath.ToSlash(path), string(text))
		out = append(out, page)
		return err
	})
	return out, err
}

var fence = regexp.MustCompile("^ {0,3}(```+|~~~+) *(.*)$")

// Parse tells prose from code. A fence that is never closed is an error.
func Parse(path, text string) (*Page, error) {
	page := &Page{Path: path}
	var open string
	for i, line := range strings.Split(text, "\n") {
		prose := ""
		found := fence.FindStringSubmatch(line)
		switch {
		case open == "" && found != nil:
			open = found[1]
			page.Blocks = append(page.Blocks, Block{Info: strings.Fields(found[2]), Line: i + 1})
		case open != "" && found != nil && found[2] == "" && strings.HasPrefix(found[1], open):
			open = ""
		case open != "":
			page.Blocks[len(page.Blocks)-1].Text += line + "\n"
		case strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t"):
			// Indented code, or the second line of a list's item, which we do
			// not indent that far.
		default:
			prose = line
		}
		page.Prose = append(page.Prose, prose)
	}
	if open != "" {
		return page, fmt.Errorf("%s: a fence is not closed", path)
	}
	return page, nil
}

var (
	inline = regexp.MustCompile("`[^`]*`")
	link   = regexp.MustCompile(`\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?: "[^"]*")?\)`)
	named  = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	header = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	text   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// Links of the prose, in their order.
func (p *Page) Links() []Link {
	var out []Link
	for i, line := range p.Prose {
		for _, found := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
			out = append(out, Link{Target: found[1], Line: i + 1})
		}
	}
	return out
}

// Anchors that links can lead to: of headings, as GitHub makes them, and named
// ones.
func (p *Page) Anchors() map[string]bool {
	out := map[string]bool{}
	for _, line := range p.Prose {
		for _, found := range named.FindAllStringSubmatch(line, -1) {
			out[found[1]] = true
		}
		found := header.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		anchor := slug(found[1])
		unique := anchor
		for n := 1; out[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		out[unique] = true
	}
	return out
}

func slug(heading string) string {
	heading = text.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
