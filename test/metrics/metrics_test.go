// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the tables of docs/metrics.md to what the two programs
// register.
package metrics

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/espalier-dev/espalier/hack/docs/page"
	"github.com/espalier-dev/espalier/internal/controller"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpserver"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/refusals"
)

var update = flag.Bool("update", false, "write the tables of docs/metrics.md anew")

// recorder is a registry that keeps what is registered.
type recorder struct{ collectors []prometheus.Collector }

func (r *recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return nil
}

func (r *recorder) MustRegister(all ...prometheus.Collector) {
	r.collectors = append(r.collectors, all...)
}

func (r *recorder) Unregister(prometheus.Collector) bool { return false }

// manager gives what the operator registers.
func manager() []prometheus.Collector {
	r := &recorder{}
	controller.RegisterMetrics(r)
	refusals.New(r, logr.Discard())
	prober.New(prober.Options{
		Registerer: r,
		Probe:      func(context.Context, mcpprobe.Target) mcpprobe.Report { return mcpprobe.Report{} },
	})
	return r.collectors
}

// metric is one line of a table.
type metric struct {
	name, kind, help string
	labels           []string
}

// described is how a Desc shows itself; there is no other way to its parts.
var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "((?:[^"\\]|\\.)*)",(?: unit: "[^"]*",)? constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)

// metricsOf gives what collectors describe.
func metricsOf(t *testing.T, collectors []prometheus.Collector) []metric {
	t.Helper()
	found := map[string]metric{}
	for _, c := range collectors {
		descs := make(chan *prometheus.Desc, 100)
		c.Describe(descs)
		close(descs)
		for desc := range descs {
			parts := described.FindStringSubmatch(desc.String())
			if parts == nil {
				t.Fatalf("%s cannot be read", desc)
			}
			m := metric{name: parts[1], help: strings.ReplaceAll(parts[2], `\"`, `"`), kind: kindOf(t, c)}
			for pair := range strings.SplitSeq(parts[3], ",") {
				if name, _, ok := strings.Cut(pair, "="); ok {
					m.labels = append(m.labels, name)
				}
			}
			if parts[4] != "" {
				m.labels = append(m.labels, strings.Split(parts[4], ",")...)
			}
			found[m.name] = m
		}
	}
	var out []metric
	for _, m := range found {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
	return out
}

// kindOf gives the type of a collector's metrics.
func kindOf(t *testing.T, c prometheus.Collector) string {
	t.Helper()
	switch c := c.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.GaugeVec:
		return "gauge"
	case *prometheus.HistogramVec:
		return "histogram"
	default:
		series := make(chan prometheus.Metric, 1000)
		c.Collect(series)
		close(series)
		kinds := map[string]bool{}
		for s := range series {
			var out dto.Metric
			if err := s.Write(&out); err != nil {
				t.Fatal(err)
			}
			kinds[map[bool]string{out.Counter != nil: "counter", out.Gauge != nil: "gauge", out.Histogram != nil: "histogram"}[true]] = true
		}
		if len(kinds) != 1 {
			t.Fatalf("%T has metrics of the types %v", c, kinds)
		}
		for kind := range kinds {
			return kind
		}
		return ""
	}
}

func table(metrics []metric) string {
	var out strings.Builder
	out.WriteString("| metric | type | labels | what |\n|---|---|---|---|\n")
	for _, m := range metrics {
		var labels []string
		for _, l := range m.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", m.name, m.kind, strings.Join(labels, ", "), page.Cell(m.help))
	}
	return strings.TrimSpace(out.String())
}

// TestTables: the page has each metric of both programs, and no other.
func TestTables(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "metrics.md")
	for name, collectors := range map[string][]prometheus.Collector{
		"manager": manager(),
		"server":  mcpserver.New(mcpserver.Options{CatalogDir: t.TempDir(), CredentialsDir: t.TempDir()}).Collectors(),
	} {
		metrics := metricsOf(t, collectors)
		current, err := page.CheckSection(file, "metrics "+name, table(metrics), *update)
		if err != nil || !current {
			t.Errorf("docs/metrics.md has not the metrics of the %s (%v). Run: go test ./test/metrics -update", name, err)
		}
		for _, m := range metrics {
			if (m.kind == "counter") != strings.HasSuffix(m.name, "_total") || !strings.HasPrefix(m.name, "espalier_") || !strings.HasSuffix(m.help, ".") {
				t.Errorf("%s, a %s, is not named or described as the others are: %q", m.name, m.kind, m.help)
			}
		}
	}
}
