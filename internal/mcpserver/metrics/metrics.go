// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics holds the Prometheus metrics of the shared server.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const namespace = "espalier_server"

// Metrics are the metrics of one server. Labels hold names of the catalog and
// words of our own, never anything a caller chose.
type Metrics struct {
	registry   *prometheus.Registry
	collectors []prometheus.Collector

	calls       *prometheus.CounterVec
	entries     *prometheus.CounterVec
	durations   *prometheus.HistogramVec
	InFlight    prometheus.Gauge
	Streams     prometheus.Gauge
	refused     *prometheus.CounterVec
	reloads     *prometheus.CounterVec
	ruleFailed  *prometheus.CounterVec
	tokens      *prometheus.CounterVec
	ListChanged prometheus.Counter
	Tools       prometheus.Gauge
	NotServed   prometheus.Gauge
	// AuditFailures are lines of the audit log that could not be written.
	AuditFailures prometheus.Counter
	catalog       *prometheus.GaugeVec
	catalogTime   prometheus.Gauge
}

// New gives metrics in a registry of their own.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	m.calls = counter("calls_total", "Calls by tool, its costCategory and outcome (ok, error, or a reason).", "tool", "cost_category", "outcome")
	m.entries = counter("entry_requests_total", "Reads of resources and gets of prompts by kind, name and outcome (ok, or a reason).", "kind", "name", "outcome")
	m.durations = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "call_duration_seconds", Help: "Time that calls took.",
		Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	}, []string{"tool"})
	m.refused = counter("requests_refused_total", "Requests refused before any method ran, by reason.", "reason")
	m.ruleFailed = counter("rule_failures_total", "Rules that could not be evaluated and so hid an entry (access, upstreams) or limited a call (limits).", "rules")
	m.tokens = counter("token_requests_total", "Requests to token endpoints of connections, by grant and outcome (ok, or a reason).", "grant", "outcome")
	m.reloads = counter("catalog_reloads_total", "Catalogs found on disk, by what became of them.", "state")
	m.catalog = gauge("catalog_info", "1 for the digest of the catalog that is served.", "digest")
	inFlight, streams := gauge("calls_in_flight", "Calls that run."), gauge("streams", "Open streams: of subscriptions, and of sessions.")
	tools, notServed := gauge("tools", "Tools served."), gauge("entries_not_served", "Entries of the catalog that are not served.")
	loaded := gauge("catalog_loaded_timestamp_seconds", "When the served catalog was loaded.")
	changed := counter("list_changed_total", "Changes of lists that subscribers were told of.")
	audit := counter("audit_failures_total", "Lines of the audit log that could not be written.")
	build := gauge("build_info", "1 for the version of the server.", "version")
	m.Register(m.calls, m.entries, m.durations, m.refused, m.ruleFailed, m.tokens, m.reloads, m.catalog, inFlight, streams, tools, notServed, loaded, changed, audit, build)
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.InFlight, m.Streams = inFlight.WithLabelValues(), streams.WithLabelValues()
	m.Tools, m.NotServed, m.catalogTime = tools.WithLabelValues(), notServed.WithLabelValues(), loaded.WithLabelValues()
	m.ListChanged, m.AuditFailures = changed.WithLabelValues(), audit.WithLabelValues()
	build.WithLabelValues(version).Set(1)
	return m
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Sessions has count tell how many sessions there are.
func (m *Metrics) Sessions(count func() int) {
	m.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: namespace, Name: "sessions", Help: "Sessions of legacy clients that this replica has.",
	}, func() float64 { return float64(count()) }))
}

// Register adds the metrics of a part of the server.
func (m *Metrics) Register(collectors ...prometheus.Collector) {
	m.registry.MustRegister(collectors...)
	m.collectors = append(m.collectors, collectors...)
}

// Collectors are all but those of Go and of the process, for who describes
// them.
func (m *Metrics) Collectors() []prometheus.Collector { return m.collectors }

// Call notes a finished call. tool is empty for one that is not served.
func (m *Metrics) Call(tool, costCategory, outcome string, took time.Duration) {
	m.calls.WithLabelValues(tool, costCategory, outcome).Inc()
	if tool != "" {
		m.durations.WithLabelValues(tool).Observe(took.Seconds())
	}
}

// Forget drops the series of a tool that is no longer served.
func (m *Metrics) Forget(tool string) {
	m.calls.DeletePartialMatch(prometheus.Labels{"tool": tool})
	m.durations.DeletePartialMatch(prometheus.Labels{"tool": tool})
}

// Entry notes a finished request for a resource or prompt. name is empty for
// one that is not served.
func (m *Metrics) Entry(kind, name, outcome string) {
	m.entries.WithLabelValues(kind, name, outcome).Inc()
}

// ForgetEntry drops the series of a resource or prompt that is no longer
// served.
func (m *Metrics) ForgetEntry(kind, name string) {
	m.entries.DeletePartialMatch(prometheus.Labels{"kind": kind, "name": name})
}

// Refused notes a request that no method saw.
func (m *Metrics) Refused(reason string) { m.refused.WithLabelValues(reason).Inc() }

// RuleFailed notes a rule of access, limits or upstreams that could not be
// evaluated.
func (m *Metrics) RuleFailed(rules string) { m.ruleFailed.WithLabelValues(rules).Inc() }

// Token notes a request to a token endpoint.
func (m *Metrics) Token(grant, outcome string) { m.tokens.WithLabelValues(grant, outcome).Inc() }

// Reload notes a catalog found on disk.
func (m *Metrics) Reload(state string) { m.reloads.WithLabelValues(state).Inc() }

// Catalog notes the catalog that is served from now on.
func (m *Metrics) Catalog(digest string, tools, notServed int, at time.Time) {
	m.catalog.Reset()
	m.catalog.WithLabelValues(digest).Set(1)
	m.Tools.Set(float64(tools))
	m.NotServed.Set(float64(notServed))
	m.catalogTime.Set(float64(at.Unix()))
}
