// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package upstream

import "github.com/prometheus/client_golang/prometheus"

const namespace = "espalier_server"

// metrics have names of upstreams, which are the catalog's, as labels.
type metrics struct {
	state    *prometheus.GaugeVec
	requests *prometheus.CounterVec
	losses   *prometheus.CounterVec
	// exclusive sessions that are open, and calls that wait for their callers.
	exclusive *prometheus.GaugeVec
	parked    prometheus.Gauge
}

func newMetrics() *metrics {
	return &metrics{
		state: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "upstream_up", Help: "1 while the upstream answers.",
		}, []string{"upstream"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "upstream_calls_total", Help: "Calls passed to upstreams, by outcome (ok, error, or a reason).",
		}, []string{"upstream", "outcome"}),
		losses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: namespace, Name: "upstream_connect_failures_total", Help: "Attempts to connect an upstream that failed, or connections that were lost.",
		}, []string{"upstream"}),
		exclusive: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: namespace, Name: "upstream_client_sessions", Help: "Sessions or child processes that are for one client each.",
		}, []string{"upstream"}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: namespace, Name: "parked_calls", Help: "Calls that wait for their caller's answer to a question.",
		}),
	}
}

func (m *metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.state, m.requests, m.losses, m.exclusive, m.parked}
}

func (m *metrics) up(name string, up bool) {
	if up {
		m.state.WithLabelValues(name).Set(1)
		return
	}
	m.state.WithLabelValues(name).Set(0)
	m.losses.WithLabelValues(name).Inc()
}

func (m *metrics) call(name, outcome string) { m.requests.WithLabelValues(name, outcome).Inc() }

// forget drops the series of an upstream that the catalog no longer has.
func (m *metrics) forget(name string) {
	labels := prometheus.Labels{"upstream": name}
	m.state.DeletePartialMatch(labels)
	m.requests.DeletePartialMatch(labels)
	m.losses.DeletePartialMatch(labels)
	m.exclusive.DeletePartialMatch(labels)
}
