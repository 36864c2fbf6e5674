// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// metrics of the prober. The labels of objects are their namespace and name;
// nothing a peer said is ever a label.
type metrics struct {
	probes   *prometheus.CounterVec
	duration *prometheus.HistogramVec
	targets  *prometheus.GaugeVec
	proof    *prometheus.GaugeVec
}

var verdicts = []Verdict{Pending, Proved, AuthRequired, Failing}

func newMetrics(registerer prometheus.Registerer, p *Prober) *metrics {
	m := &metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_probes_total",
			Help: "Probes that ended, by kind (full or report) and outcome.",
		}, []string{"kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "espalier_probe_duration_seconds",
			Help:    "Time a full probe took, by outcome.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"outcome"}),
		targets: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_mcpserver_probe_targets",
			Help: "Probe targets of an MCPServer by verdict.",
		}, []string{"namespace", "name", "verdict"}),
		proof: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "espalier_mcpserver_last_proof_timestamp_seconds",
			Help: "When the MCPServer's least recently proved target was last proved; 0 when one never was.",
		}, []string{"namespace", "name"}),
	}
	if registerer == nil {
		return m
	}
	registerer.MustRegister(m.probes, m.duration, m.targets, m.proof,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "espalier_probe_lag_seconds",
			Help: "By how much the most overdue probe of a target that is not slow is late.",
		}, func() float64 { return p.Lag().Seconds() }))
	for index, name := range laneNames {
		labels := prometheus.Labels{"lane": name}
		registerer.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "espalier_probe_queue_depth", ConstLabels: labels,
				Help: "Probes that are due and wait for a slot or the rate, by lane.",
			}, func() float64 { return p.depth(index) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "espalier_probes_running", ConstLabels: labels,
				Help: "Probes under way, by lane.",
			}, func() float64 { return p.inUse(index) }))
	}
	return m
}

// probed counts one probe.
func (m *metrics) probed(r *run, report mcpprobe.Report, took time.Duration) {
	if r.reportOnly {
		m.probes.WithLabelValues("report", string(report.Outcome)).Inc()
		return
	}
	m.probes.WithLabelValues("full", string(report.Outcome)).Inc()
	m.duration.WithLabelValues(string(report.Outcome)).Observe(took.Seconds())
}

// observe sets the series of o.
func (m *metrics) observe(o *object) {
	counts := map[Verdict]int{}
	var oldest time.Time
	never := len(o.targets) == 0
	for _, t := range o.targets {
		counts[t.verdict]++
		never = never || t.lastProof.IsZero()
		if oldest.IsZero() || t.lastProof.Before(oldest) {
			oldest = t.lastProof
		}
	}
	for _, v := range verdicts {
		m.targets.WithLabelValues(o.key.Namespace, o.key.Name, string(v)).Set(float64(counts[v]))
	}
	proof := 0.0
	if !never {
		proof = float64(oldest.UnixMilli()) / 1000
	}
	m.proof.WithLabelValues(o.key.Namespace, o.key.Name).Set(proof)
}

// forget drops the series of key.
func (m *metrics) forget(key Key) {
	labels := prometheus.Labels{"namespace": key.Namespace, "name": key.Name}
	m.targets.DeletePartialMatch(labels)
	m.proof.DeletePartialMatch(labels)
}

func (p *Prober) depth(index int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	due := 0
	for _, t := range p.lanes[index].queue {
		if !t.due.After(now) {
			due++
		}
	}
	return float64(due)
}

func (p *Prober) inUse(index int) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return float64(p.lanes[index].inUse)
}
