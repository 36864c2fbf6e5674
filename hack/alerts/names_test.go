// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// onTargets are the labels that a scrape gives, as docs/metrics.md asks for.
var onTargets = []string{"namespace", "pod", "job", "instance", "mcp_espalier_dev_server"}

// known are the metrics of docs/metrics.md, which test/metrics holds to the
// programs, with their labels; those of libraries have none that are known.
func known(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	line := regexp.MustCompile("(?m)^\\| `(espalier_[a-z_]+)` \\| (\\w+) \\| ([^|]*) \\|")
	for _, m := range line.FindAllStringSubmatch(string(raw), -1) {
		found := slices.Clone(onTargets)
		for _, l := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(m[3], -1) {
			found = append(found, l[1])
		}
		if m[2] != "histogram" {
			out[m[1]] = found
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			out[m[1]+suffix] = append(slices.Clone(found), "le")
		}
	}
	if len(out) < 30 {
		t.Fatalf("only %d metrics were found", len(out))
	}
	for _, m := range regexp.MustCompile("`((?:controller_runtime|workqueue|rest_client|leader_election|process)_[a-z_]+)`").FindAllStringSubmatch(string(raw), -1) {
		out[m[1]] = nil
	}
	return out
}

// check fails for metrics and labels that do not exist.
func check(t *testing.T, where, query string, metrics map[string][]string) {
	t.Helper()
	expression, err := parse.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	var within []string
	library := false
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		has, ok := metrics[selector.Name]
		if !ok {
			t.Errorf("%s: there is no metric %s", where, selector.Name)
		}
		within, library = append(within, has...), library || has == nil
		for _, m := range selector.LabelMatchers {
			if m.Name != labels.MetricName && has != nil && !slices.Contains(has, m.Name) {
				t.Errorf("%s: %s has no label %s", where, selector.Name, m.Name)
			}
		}
		return nil
	})
	if library {
		return
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if by, ok := node.(*parser.AggregateExpr); ok {
			for _, name := range by.Grouping {
				if !slices.Contains(within, name) {
					t.Errorf("%s: no metric has the label %s", where, name)
				}
			}
		}
		return nil
	})
}

// TestRuleNames: rules name metrics, labels and reasons that exist.
func TestRuleNames(t *testing.T) {
	metrics := known(t)
	alerts := loadRules(t)
	for name, rule := range alerts {
		check(t, name, rule.Expr, metrics)
	}
	source, err := os.ReadFile(filepath.Join(root, "internal", "mcpserver", "call", "call.go"))
	if err != nil {
		t.Fatal(err)
	}
	outcomes := regexp.MustCompile(`outcome=~"([A-Za-z|]+)"`).FindStringSubmatch(alerts["EspalierCallsFail"].Expr)
	if outcomes == nil {
		t.Fatal("EspalierCallsFail names no outcomes")
	}
	for reason := range strings.SplitSeq(outcomes[1], "|") {
		if !regexp.MustCompile(`Reason = "` + reason + `"`).Match(source) {
			t.Errorf("no call ends with %s", reason)
		}
	}
}

// panel of a dashboard.
type panel struct {
	Title   string
	Type    string
	Targets []struct{ Expr string }
}

// TestDashboard: each query of the dashboard parses and names what exists, and
// each panel has one.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "charts", "espalier", "files", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels     []panel
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	metrics, queries := known(t), 0
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s has no query", p.Title)
		}
		for _, target := range p.Targets {
			check(t, p.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"), metrics)
			queries++
		}
	}
	if queries < 30 {
		t.Errorf("only %d queries were found", queries)
	}
	variables := map[string]bool{}
	values := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)
	for _, v := range dashboard.Templating.List {
		variables[v.Name] = true
		if v.Type != "query" {
			continue
		}
		parts := values.FindStringSubmatch(v.Definition)
		if parts == nil {
			t.Fatalf("the variable %s is %q", v.Name, v.Definition)
		}
		check(t, v.Name, "sum by ("+parts[2]+") ("+parts[1]+")", metrics)
	}
	for _, used := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(raw), -1) {
		if name := used[1]; !variables[name] && !strings.HasPrefix(name, "__") {
			t.Errorf("there is no variable $%s", name)
		}
	}
}
