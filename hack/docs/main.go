// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Docs writes the generated sections of the pages in docs/: fields and columns
// from the CRDs, conditions from reasons.yaml, messages from the probe itself.
// "make docs" runs it from the root of the repository.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

func main() {
	changed, err := run(".", true)
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		os.Exit(1)
	}
	for _, file := range changed {
		fmt.Println(file)
	}
}

// run gives the pages below root/docs whose sections are not current, and
// writes them.
func run(root string, write bool) (changed []string, err error) {
	g, err := load(root)
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		before, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		after, err := g.fill(string(before))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if after == string(before) {
			return nil
		}
		changed = append(changed, file)
		if !write {
			return nil
		}
		return os.WriteFile(file, []byte(after), 0o644)
	})
	return changed, err
}

// generator has what sections are made of.
type generator struct {
	kinds   kinds
	enums   enums
	reasons map[string]conditions
}

func load(root string) (*generator, error) {
	g := &generator{}
	var err error
	if g.kinds, err = loadKinds(filepath.Join(root, "config", "crd", "bases")); err != nil {
		return nil, err
	}
	if g.enums, err = loadEnums(filepath.Join(root, "api", "v1alpha1")); err != nil {
		return nil, err
	}
	g.reasons, err = loadReasons(filepath.Join(root, "hack", "docs", "reasons.yaml"))
	return g, err
}

// fill makes the sections of one page.
func (g *generator) fill(text string) (string, error) {
	f := &fields{kinds: g.kinds, enums: g.enums, seen: map[string]string{}}
	if err := g.complete(page.Sections(text)); err != nil {
		return "", err
	}
	return page.Fill(text, func(words []string) (string, error) {
		switch {
		case words[0] == "fields" && len(words) == 3:
			return f.table(words[1], words[2], words[2] != "spec")
		case words[0] == "columns" && len(words) == 2:
			return g.kinds.columns(words[1]), nil
		case words[0] == "conditions" && len(words) == 2:
			return conditionTables(g.reasons, words[1]), nil
		case words[0] == "outcomes" && len(words) == 1:
			return outcomes(), nil
		case words[0] == "flags" && len(words) == 2, words[0] == "answers" && len(words) == 1,
			words[0] == "metrics" && len(words) == 2:
			return page.Section(text, words), nil // Of a test that runs the program.
		}
		return "", fmt.Errorf("there is no such section")
	})
}

// complete: a page with the fields of a spec has a section for each object in
// it that has fields of ours.
func (g *generator) complete(sections [][]string) error {
	have := map[string]bool{}
	for _, words := range sections {
		have[strings.Join(words, " ")] = true
	}
	for kind := range g.kinds {
		if !have["fields "+kind+" spec"] {
			continue
		}
		spec, err := g.kinds.at(kind, "spec")
		if err != nil {
			return err
		}
		for _, name := range names(spec) {
			p := spec.Properties[name]
			want := "fields " + kind + " spec." + name
			if described(&p) && !have[want] {
				return fmt.Errorf("a section is missing; add a heading \"### spec.%s\", a sentence, and these two lines:\n<!-- generated: %s -->\n<!-- end -->", name, want)
			}
		}
		if want := "fields " + kind + " status"; !have[want] {
			return fmt.Errorf("a section is missing; add these two lines:\n<!-- generated: %s -->\n<!-- end -->", want)
		}
	}
	return nil
}
