// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const (
	root = "../.."
	// evaluated is how often rules are, and how far apart samples are.
	evaluated = 30 * time.Second
)

var parse = parser.NewParser(parser.Options{})

// loadRules gives the alerts by name.
func loadRules(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(filepath.Join(root, "charts", "espalier", "files", "rules.yaml"), false, model.UTF8Validation, parse, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	out := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || out[rule.Alert].Alert != "" {
				t.Errorf("group %s: %q is no alert, or twice there", group.Name, rule.Alert+rule.Record)
			}
			out[rule.Alert] = rule
		}
	}
	if len(out) < 8 {
		t.Fatalf("only %d alerts were found", len(out))
	}
	return out
}

// recorded is one case: series, and which alerts fire on them when.
type recorded struct {
	Name  string
	Alert string
	// Series in the notation of Prometheus' tests, 30 s apart from time 0 on.
	Series map[string]string
	// Fires holds, by time, the labels of all alerts that fire then.
	Fires map[string][]map[string]string
}

// TestAlerts evaluates each alert on recorded series: when it fires, and when
// it does not.
func TestAlerts(t *testing.T) {
	raw, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []recorded
	if err := yaml.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	alerts := loadRules(t)
	fired, silent := map[string]bool{}, map[string]bool{}
	for _, c := range cases {
		t.Run(c.Alert+" "+c.Name, func(t *testing.T) {
			rule, ok := alerts[c.Alert]
			if !ok {
				t.Fatal("there is no such alert")
			}
			for _, fires := range evaluate(t, rule, c) {
				fired[c.Alert] = fired[c.Alert] || fires
				silent[c.Alert] = silent[c.Alert] || !fires
			}
		})
	}
	for name := range alerts {
		if !fired[name] || !silent[name] {
			t.Errorf("%s has no case in which it fires, or none in which it does not", name)
		}
	}
}

// evaluate runs a rule over a case and gives whether it was to fire at each of
// the times that were looked at.
func evaluate(t *testing.T, rule rulefmt.Rule, c recorded) (out []bool) {
	t.Helper()
	var script strings.Builder
	script.WriteString("load " + evaluated.String() + "\n")
	for _, series := range slices.Sorted(maps.Keys(c.Series)) {
		script.WriteString("  " + series + " " + c.Series[series] + "\n")
	}
	storage := promqltest.LoadedStorage(t, script.String())
	query := rules.EngineQueryFunc(promqltest.NewTestEngine(t, false, 0, 100000), storage)
	expression, err := parse.ParseExpr(rule.Expr)
	if err != nil {
		t.Fatal(err)
	}
	alert := rules.NewAlertingRule(rule.Alert, expression, time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
		labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "", true, slog.New(slog.DiscardHandler))
	checks := map[time.Duration][]map[string]string{}
	var last time.Duration
	for text, want := range c.Fires {
		at, err := time.ParseDuration(text)
		if err != nil || at%evaluated != 0 {
			t.Fatalf("%q is no time at which rules are evaluated", text)
		}
		checks[at], last = want, max(last, at)
	}
	for at := time.Duration(0); at <= last; at += evaluated {
		if _, err := alert.Eval(context.Background(), 0, time.UnixMilli(at.Milliseconds()).UTC(), query, nil, 0); err != nil {
			t.Fatal(err)
		}
		want, ok := checks[at]
		if !ok {
			continue
		}
		out = append(out, len(want) > 0)
		if diff := cmp.Diff(normal(want), normal(firing(t, alert))); diff != "" {
			t.Errorf("at %s (-want +got):\n%s", at, diff)
		}
	}
	return out
}

// firing gives the labels of the alerts that fire now.
func firing(t *testing.T, rule *rules.AlertingRule) (out []map[string]string) {
	t.Helper()
	for _, a := range rule.ActiveAlerts() {
		if a.State != rules.StateFiring {
			continue
		}
		found := a.Labels.Map()
		delete(found, "alertname")
		out = append(out, found)
		a.Annotations.Range(func(l labels.Label) {
			if strings.Contains(l.Value, "<error") || strings.Contains(l.Value, "<no value>") || strings.Contains(l.Value, "{{") || strings.Contains(l.Value, "//.") {
				t.Errorf("the %s cannot be filled: %s", l.Name, l.Value)
			}
		})
	}
	return out
}

// normal orders alerts.
func normal(all []map[string]string) []string {
	out := []string{}
	for _, one := range all {
		out = append(out, labels.FromMap(one).String())
	}
	slices.Sort(out)
	return out
}

// TestRunbooks: each alert says how bad it is and leads to a section that says
// what to do, and the table of the page has it.
func TestRunbooks(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root, "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	alerts := loadRules(t)
	for name, rule := range alerts {
		const base = "https://github.com/espalier-dev/espalier/blob/main/docs/alerts.md#"
		anchor := strings.ToLower(name)
		severity := rule.Labels["severity"]
		if rule.Annotations["runbook_url"] != base+anchor || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || severity != "warning" && severity != "critical" {
			t.Errorf("%s has the labels %v and the annotations %v", name, rule.Labels, rule.Annotations)
		}
		if !strings.Contains(page, "\n## "+name+"\n") || !strings.Contains(page, "| ["+name+"](#"+anchor+") | "+severity+" |") {
			t.Errorf("docs/alerts.md has no section or no line for %s (%s)", name, severity)
		}
	}
	if sections := strings.Count(page, "\n## Espalier"); sections != len(alerts) {
		t.Errorf("docs/alerts.md has %d sections, there are %d alerts", sections, len(alerts))
	}
}
