// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

// enums are the meanings of values by Go type: the CRDs have the values alone.
type enums map[string]map[string]string

// loadEnums reads the constants of named types, and their comments.
func loadEnums(dir string) (enums, error) {
	out := enums{}
	files, err := filepath.Glob(filepath.Join(dir, "*_types.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Type == nil || len(spec.Values) != 1 {
				return true
			}
			kind, ok := spec.Type.(*ast.Ident)
			value, literal := spec.Values[0].(*ast.BasicLit)
			if !ok || !literal {
				return true
			}
			text, err := strconv.Unquote(value.Value)
			if err != nil {
				return true
			}
			if out[kind.Name] == nil {
				out[kind.Name] = map[string]string{}
			}
			_, means, _ := strings.Cut(spec.Doc.Text(), ": ")
			out[kind.Name][text] = strings.TrimSpace(means)
			return true
		})
	}
	return out, nil
}

// of lists the values that s may have, with their meanings where exactly one
// type has these values.
func (e enums) of(s *schema) string {
	if len(s.Enum) == 0 {
		return ""
	}
	var values []string
	for _, raw := range s.Enum {
		value, err := strconv.Unquote(string(raw.Raw))
		if err != nil {
			value = string(raw.Raw)
		}
		values = append(values, value)
	}
	meanings := e.meanings(values)
	var out []string
	for _, value := range values {
		text := page.Code(value)
		if means := meanings[value]; means != "" {
			text += ": " + page.Cell(strings.TrimSuffix(means, "."))
		}
		out = append(out, text)
	}
	return " One of " + strings.Join(out, "; ") + "."
}

func (e enums) meanings(values []string) map[string]string {
	sorted := slices.Sorted(slices.Values(values))
	var found map[string]string
	for _, constants := range e {
		var names []string
		for value := range constants {
			names = append(names, value)
		}
		slices.Sort(names)
		if !slices.Equal(names, sorted) {
			continue
		}
		if found != nil {
			return nil
		}
		found = constants
	}
	return found
}
