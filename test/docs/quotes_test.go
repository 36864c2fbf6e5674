// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// verb of a format.
var verb = regexp.MustCompile(`%(\.\d+)?[a-z%]`)

// fragments are the fixed parts of all string literals in the code that makes
// messages, the longest first.
func fragments(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, dir := range []string{"controller", "catalog", "mcpprobe", "podstate", "resources"} {
		err := fs.WalkDir(os.DirFS(filepath.Join(root, "internal", dir)), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal", dir, path), nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						for _, part := range verb.Split(text, -1) {
							if part = strings.TrimSpace(part); len(part) > 3 {
								seen[part] = true
							}
						}
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for part := range seen {
		out = append(out, part)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// foreign words stand in messages and are not ours.
var foreign = regexp.MustCompile(`1:6: Syntax error: mismatched input .* IDENTIFIER}`)

// strange gives what of a message is neither text of the code nor a short
// value such as a name or a number.
func strange(message string, parts []string) string {
	message = foreign.ReplaceAllString(message, "")
	for _, part := range parts {
		message = strings.ReplaceAll(message, part, "\x00")
	}
	for _, rest := range strings.Split(message, "\x00") {
		if len(strings.Fields(rest)) > 3 {
			return rest
		}
	}
	return ""
}

// TestQuotes: what the documentation quotes as messages of the operator is
// made of text that the operator has.
func TestQuotes(t *testing.T) {
	parts := fragments(t)
	quotes := 0
	for _, page := range pages(t) {
		if !strings.HasPrefix(page.Path, "docs/") {
			continue
		}
		for i, line := range page.Prose {
			message, ok := strings.CutPrefix(line, "> ")
			if !ok {
				continue
			}
			quotes++
			if rest := strange(message, parts); rest != "" {
				t.Errorf("%s:%d: no message says %q", page.Path, i+1, rest)
			}
		}
	}
	if quotes < 15 {
		t.Errorf("only %d quotes were found", quotes)
	}
	if strange("The server is quite well and happy today.", parts) == "" {
		t.Error("a message that does not exist passes")
	}
}
