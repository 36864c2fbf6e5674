// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs tests the documentation: its links lead somewhere, its index
// has all pages, and it names nothing that does not exist.
package docs

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/test/markdown"
)

var root = filepath.Join("..", "..")

func pages(t *testing.T) map[string]*markdown.Page {
	t.Helper()
	all, err := markdown.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*markdown.Page{}
	for _, page := range all {
		out[page.Path] = page
	}
	return out
}

// templates are texts of pages that stand elsewhere, where their links lead.
var templates = map[string]bool{"hack/helm/chartgen/readme.md": true}

// TestLinks: each relative link leads to a file that exists and, with an
// anchor, to a heading of that page.
func TestLinks(t *testing.T) {
	all := pages(t)
	checked := 0
	for _, page := range all {
		if templates[page.Path] {
			continue
		}
		for _, link := range page.Links() {
			if strings.Contains(link.Target, "://") || strings.HasPrefix(link.Target, "mailto:") {
				continue
			}
			checked++
			file, anchor, _ := strings.Cut(link.Target, "#")
			target := page.Path
			if file != "" {
				target = path.Join(path.Dir(page.Path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s:%d: there is no %s", page.Path, link.Line, target)
				continue
			}
			if to := all[target]; anchor != "" && to != nil && !to.Anchors()[anchor] {
				t.Errorf("%s:%d: %s has no heading #%s", page.Path, link.Line, target, anchor)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d links were found", checked)
	}
}

// TestIndex: docs/README.md leads to each page of docs, at most over the index
// of a folder.
func TestIndex(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{"docs/README.md": true}
	for next := []string{"docs/README.md"}; len(next) > 0; next = next[1:] {
		page := all[next[0]]
		if page == nil {
			t.Fatalf("there is no %s", next[0])
		}
		for _, link := range page.Links() {
			file, _, _ := strings.Cut(link.Target, "#")
			target := path.Join(path.Dir(page.Path), file)
			if reached[target] || all[target] == nil {
				continue
			}
			reached[target] = true
			if path.Base(target) == "README.md" && strings.HasPrefix(target, "docs/") {
				next = append(next, target)
			}
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "docs/") && !reached[name] {
			t.Errorf("docs/README.md does not lead to %s", name)
		}
	}
}

// TestExamplesIndex: examples/README.md has each folder beside it.
func TestExamplesIndex(t *testing.T) {
	index := pages(t)["examples/README.md"]
	if index == nil {
		t.Fatal("there is no examples/README.md")
	}
	linked := map[string]bool{}
	for _, link := range index.Links() {
		linked[strings.TrimSuffix(link.Target, "/")] = true
	}
	folders, err := os.ReadDir(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if folder.IsDir() && !linked[folder.Name()] {
			t.Errorf("examples/README.md does not lead to %s", folder.Name())
		}
	}
}
