// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

var root = filepath.Join("..", "..")

// TestCurrent: what is generated is as "make docs" would write it.
func TestCurrent(t *testing.T) {
	stale, err := run(root, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) > 0 {
		t.Errorf("not current: %v. Run: make docs", stale)
	}
}

// constants of the API's conditions.go: values of Reason..., comments of
// Condition... by type.
func constants(t *testing.T) (reasons map[string]bool, comments map[string]string) {
	t.Helper()
	reasons, comments = map[string]bool{}, map[string]string{}
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "api", "v1alpha1", "conditions.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name := spec.Names[0].Name
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch {
		case strings.HasPrefix(name, "Reason"):
			reasons[value] = true
		case strings.HasPrefix(name, "Condition"):
			comments[value] = strings.Join(strings.Fields(spec.Doc.Text()), " ")
		}
		return true
	})
	if len(reasons) < 60 || len(comments) < 10 {
		t.Fatalf("only %d reasons and %d conditions were found", len(reasons), len(comments))
	}
	return reasons, comments
}

// documented gives, by condition and status, the reasons of reasons.yaml.
func documented(t *testing.T) map[string]map[string][]string {
	t.Helper()
	groups, err := loadReasons("reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string][]string{}
	for group, all := range groups {
		for _, c := range all {
			if out[c.Condition] == nil {
				out[c.Condition] = map[string][]string{}
			}
			for _, r := range c.Reasons {
				if r.Means == "" || r.Do == "" || c.Says == "" {
					t.Errorf("%s: %s %s does not say what it means and what to do", group, c.Condition, r.Reason)
				}
				if !slices.Contains(out[c.Condition][r.Status], r.Reason) {
					out[c.Condition][r.Status] = append(out[c.Condition][r.Status], r.Reason)
				}
			}
		}
	}
	return out
}

// TestEachReasonIsDocumented: each that the API declares, and no other.
func TestEachReasonIsDocumented(t *testing.T) {
	declared, comments := constants(t)
	told := map[string]bool{}
	for condition, statuses := range documented(t) {
		if _, ok := comments[condition]; !ok {
			t.Errorf("reasons.yaml has a condition %s, which the API has not", condition)
		}
		for status, reasons := range statuses {
			for _, reason := range reasons {
				told[reason] = true
				if !declared[reason] {
					t.Errorf("reasons.yaml: %s %s has %s, which api/v1alpha1/conditions.go does not declare", condition, status, reason)
				}
			}
		}
	}
	for reason := range declared {
		if !told[reason] {
			t.Errorf("reason %s is not in hack/docs/reasons.yaml: add what it means and what to do, then run: make docs", reason)
		}
	}
}

var statuses = regexp.MustCompile(`\b(True|False|Unknown): `)

// TestReasonsAgreeWithTheAPI: the comment of a condition and reasons.yaml have
// the same reasons for each status.
func TestReasonsAgreeWithTheAPI(t *testing.T) {
	declared, comments := constants(t)
	told := documented(t)
	for condition, comment := range comments {
		if condition == "Reconciling" || condition == "Stalled" {
			continue // They borrow the reasons of others.
		}
		marks := statuses.FindAllStringSubmatchIndex(comment, -1)
		if len(marks) == 0 {
			t.Errorf("the comment of condition %s lists no reasons", condition)
		}
		for i, at := range marks {
			status, until := comment[at[2]:at[3]], len(comment)
			if i+1 < len(marks) {
				until = marks[i+1][0]
			}
			var listed []string
			for _, word := range regexp.MustCompile(`\w+`).FindAllString(comment[at[1]:until], -1) {
				if declared[word] {
					listed = append(listed, word)
				}
			}
			for _, reason := range told[condition][status] {
				if !slices.Contains(listed, reason) {
					t.Errorf("%s %s %s is in reasons.yaml and not in the comment of the condition", condition, status, reason)
				}
			}
			for _, reason := range listed {
				if !slices.Contains(told[condition][status], reason) {
					t.Errorf("%s %s %s is in the comment of the condition and not in reasons.yaml", condition, status, reason)
				}
			}
		}
	}
}

// TestOutcomes: the table has a row for each outcome, with a message that
// needs nothing more to be told.
func TestOutcomes(t *testing.T) {
	table := outcomes()
	for _, outcome := range mcpprobe.Outcomes {
		if outcome == mcpprobe.Proved || outcome == mcpprobe.Canceled {
			continue
		}
		if !strings.Contains(table, "| `"+string(outcome)+"` | ") {
			t.Errorf("%s is missing", outcome)
		}
	}
	for _, hole := range []string{"unknown", "HTTP 0", "than 0 bytes", "with , which", "The outcome is"} {
		if strings.Contains(table, hole) {
			t.Errorf("a message has %q: give outcomes.go the facts", hole)
		}
	}
}

// TestComplete: a page that leaves out an object of the spec is refused.
func TestComplete(t *testing.T) {
	g, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	_, err = g.fill("<!-- generated: fields MCPPrompt spec -->\n<!-- end -->\n")
	if err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("%v", err)
	}
	for _, section := range []string{"fields MCPPrompt spec.nothing", "fields Nothing spec", "nothing"} {
		if _, err := g.fill("<!-- generated: " + section + " -->\n<!-- end -->\n"); err == nil {
			t.Errorf("%s: no error", section)
		}
	}
}

func TestDefaultOf(t *testing.T) {
	for text, want := range map[string][2]string{
		"port of it. Defaults to 8080. The Service's is 8080.": {"port of it. The Service's is 8080.", "8080"},
		"version of it.\nDefaults to 0.0.0.":                   {"version of it.", "0.0.0"},
		"burst. Defaults to twice the rate.":                   {"burst.", "twice the rate"},
		"image to run.":                                        {"image to run.", ""},
	} {
		told, value := defaultOf(&schema{Description: text})
		if got := [2]string{told, value}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
