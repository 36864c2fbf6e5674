// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// declaredReasons are the values of the constants Reason... of the API, by
// the constant's name.
func declaredReasons(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok {
			name := spec.Names[0].Name
			out[name], _ = strconv.Unquote(value.Value)
			if !strings.HasPrefix(spec.Doc.Text(), name+": ") {
				t.Errorf("%s has no comment that begins with %s: ", name, name)
			}
			if "Reason"+out[name] != name {
				t.Errorf("%s is %q", name, out[name])
			}
		}
		return true
	})
	if len(out) < 40 {
		t.Fatalf("only %d reasons were found", len(out))
	}
	return out
}

// sources parses the Go files, tests aside, that set reasons.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	out := map[string]*ast.File{}
	for _, dir := range []string{".", filepath.Join("..", "catalog"), filepath.Join("..", "resources")} {
		err := fs.WalkDir(os.DirFS(dir), ".", func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			name := filepath.Join(dir, path)
			out[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// reasonArgument is which argument of a function is a reason.
var reasonArgument = map[string]int{"yes": 0, "no": 0, "unknown": 0, "accepted": 0, "refused": 0}

// TestReasonsAreDeclared: no reason is written as a literal, so that each is a
// constant of the API or an outcome of the probe.
func TestReasonsAreDeclared(t *testing.T) {
	declared := declaredReasons(t)
	used := map[string]bool{}
	for name, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "mcpv1" && strings.HasPrefix(n.Sel.Name, "Reason") {
					used[n.Sel.Name] = true
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.Ident)
				if !ok {
					return true
				}
				if at, ok := reasonArgument[f.Name]; ok && len(n.Args) > at && isLiteral(n.Args[at]) {
					t.Errorf("%s: %s(...) is given a reason as text; declare it in api/v1alpha1/conditions.go", name, f.Name)
				}
			case *ast.KeyValueExpr:
				key, ok := n.Key.(*ast.Ident)
				if ok && (key.Name == "reason" || key.Name == "Reason") && isLiteral(n.Value) {
					t.Errorf("%s: a reason is set as text", name)
				}
			}
			return true
		})
	}
	for name := range used {
		if _, ok := declared[name]; !ok {
			t.Errorf("%s is used and not declared", name)
		}
	}
	for name := range declared {
		if !used[name] {
			t.Logf("%s is declared and not used (yet)", name)
		}
	}
}

func isLiteral(e ast.Expr) bool {
	_, ok := e.(*ast.BasicLit)
	return ok
}

// TestReasonsAreWellFormed: the API server takes these only, and no outcome
// means something else than a reason of the same name.
func TestReasonsAreWellFormed(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,63}$`)
	for _, reason := range declaredReasons(t) {
		if !shape.MatchString(reason) {
			t.Errorf("reason %q", reason)
		}
	}
	for _, outcome := range mcpprobe.Outcomes {
		if !shape.MatchString(string(outcome)) {
			t.Errorf("outcome %q", outcome)
		}
	}
}

// documentedReasons are the comments of the constants Condition... of the API,
// by the condition's type.
func documentedReasons(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Condition") {
			out[strings.TrimPrefix(spec.Names[0].Name, "Condition")] = spec.Doc.Text()
		}
		return true
	})
	return out
}

// TestStatesSayOnlyDocumentedReasons: whatever state a server is in, each of
// its conditions has a reason that the comment of the condition names for that
// status. What Ready and Healthy borrow is an outcome of the probe or the
// reason of another condition.
func TestStatesSayOnlyDocumentedReasons(t *testing.T) {
	documented := documentedReasons(t)
	for name, test := range states {
		w := newWorld(t, test.spec)
		if test.before != nil {
			test.before(w)
			w.pass()
		}
		test.now(w)
		conditions := w.pass().Conditions
		for _, c := range conditions {
			outcome := slices.Contains(mcpprobe.Outcomes, mcpprobe.Outcome(c.Reason))
			switch {
			case c.Type == "Reconciling" || c.Type == "Stalled" || (c.Type == "Ready" && c.Status == "False"):
				borrowed := slices.ContainsFunc(conditions, func(o metav1.Condition) bool { return o.Type != c.Type && o.Reason == c.Reason })
				if !borrowed && c.Reason != mcpv1.ReasonStartupTimedOut && c.Reason != mcpv1.ReasonPending && c.Reason != mcpv1.ReasonStarting {
					t.Errorf("%s: %s has reason %s, which no other condition has", name, c.Type, c.Reason)
				}
			case c.Type == "Healthy" && c.Status == "False" && outcome:
			case !listed(documented[c.Type], string(c.Status), c.Reason):
				t.Errorf("%s: %s is %s with reason %s, which its comment does not list:\n%s", name, c.Type, c.Status, c.Reason, documented[c.Type])
			}
		}
	}
}

// listed reports whether doc lists reason after "STATUS: ".
func listed(doc, status, reason string) bool {
	doc = strings.Join(strings.Fields(doc), " ")
	_, rest, ok := strings.Cut(doc, status+": ")
	if !ok {
		return false
	}
	for _, other := range []string{" True: ", " False: ", " Unknown: "} {
		rest, _, _ = strings.Cut(rest, other)
	}
	return regexp.MustCompile(`\b` + reason + `\b`).MatchString(rest)
}
