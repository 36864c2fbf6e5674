// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// TestEveryReasonIsExplained: what is, and what to do.
func TestEveryReasonIsExplained(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	reasons := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if kind, named := specType(spec); !ok || !named || kind != "Reason" {
			return true
		}
		reasons++
		word, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if e := (&Error{Reason: Reason(word)}); e.Message() == "" || e.Hint() == "" {
			t.Errorf("%s is not explained", word)
		}
		return false
	})
	if reasons == 0 || reasons != len(explained) {
		t.Errorf("%d reasons, %d are explained", reasons, len(explained))
	}
}

func specType(spec *ast.ValueSpec) (string, bool) {
	if spec == nil {
		return "", false
	}
	name, ok := spec.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}
