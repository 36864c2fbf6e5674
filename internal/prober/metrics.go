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
	probes    *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	handshake *prometheus.HistogramVec
	kept      prometheus.Counter
}

// buckets of durations, in seconds; a probe takes 30 s at most by default.
var buckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(registerer prometheus.Registerer, p *Prober) *metrics {
	m := &metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "espalier_probes_total",
			Help: "Probes that ended, by kind (full or report) and outcome.",
		}, []string{"kind", "outcome"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "espalier_probe_duration_seconds",
			Help:    "Time a full probe took, from the pod's report to the last list, by outcome.",
			Buckets: buckets,
		}, []string{"outcome"}),
		handshake: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "espalier_probe_handshake_duration_seconds",
			Help:    "Time until a server agreed to discover or initialize, or refused, or did not answer, by outcome of the probe.",
			Buckets: buckets,
		}, []string{"outcome"}),
		kept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "espalier_probe_lists_kept_total",
			Help: "Full probes that did not read the lists again, since the server says by ttlMs that they still hold.",
		}),
	}
	if registerer != nil {
		registerer.MustRegister(m.probes, m.duration, m.handshake, m.kept, collector{p})
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
	if report.Handshake > 0 {
		m.handshake.WithLabelValues(string(report.Outcome)).Observe(report.Handshake.Seconds())
	}
	if report.ListsKept {
		m.kept.Inc()
	}
}

var verdicts = []Verdict{Pending, Proved, AuthRequired, Failing}

var (
	targetsDesc = prometheus.NewDesc("espalier_mcpserver_probe_targets",
		"Probe targets of an MCPServer by verdict.", []string{"namespace", "name", "verdict"}, nil)
	proofDesc = prometheus.NewDesc("espalier_mcpserver_last_proof_timestamp_seconds",
		"When the MCPServer's least recently proved target was last proved; 0 when one never was.", []string{"namespace", "name"}, nil)
	upDesc = prometheus.NewDesc("espalier_mcpserver_up",
		"1 while each probe target of an MCPServer answers as an MCP server, 0 while one fails; absent before the first verdict and without targets.", []string{"namespace", "name"}, nil)
	intervalDesc = prometheus.NewDesc("espalier_mcpserver_probe_interval_seconds",
		"The interval at which an MCPServer's targets are probed.", []string{"namespace", "name"}, nil)
	roundDesc = prometheus.NewDesc("espalier_prober_last_round_timestamp_seconds",
		"When the prober last looked at what is due; absent on an operator that does not lead. While it goes on, some operator works.", nil, nil)
	lagDesc = prometheus.NewDesc("espalier_probe_lag_seconds",
		"By how much the most overdue probe of a target that is not slow is late.", nil, nil)
	depthDesc = prometheus.NewDesc("espalier_probe_queue_depth",
		"Probes that are due and wait for a slot or the rate, by lane.", []string{"lane"}, nil)
	runningDesc = prometheus.NewDesc("espalier_probes_running",
		"Probes under way, by lane.", []string{"lane"}, nil)
)

// collector reads the prober's state when it is asked for. Gauges that the
// prober sets itself would be locked one after another under its own lock,
// while a scrape that holds them waits for that lock: each would wait for the
// other for ever.
type collector struct{ p *Prober }

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{targetsDesc, proofDesc, upDesc, intervalDesc, roundDesc, lagDesc, depthDesc, runningDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. The lock is not held while who
// reads the channel may keep it waiting.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.p.series() {
		ch <- m
	}
}

// series of this moment.
func (p *Prober) series() []prometheus.Metric {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var all []prometheus.Metric
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		all = append(all, prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...))
	}
	if !p.beat.IsZero() {
		gauge(roundDesc, float64(p.beat.UnixMilli())/1000)
	}
	lag, _ := p.lag(now)
	gauge(lagDesc, lag.Seconds())
	for index, name := range laneNames {
		lane := p.lanes[index]
		gauge(depthDesc, float64(lane.due(now)), name)
		gauge(runningDesc, float64(lane.inUse), name)
	}
	for _, o := range p.objects {
		counts, proof := o.standing()
		for _, v := range verdicts {
			gauge(targetsDesc, float64(counts[v]), o.key.Namespace, o.key.Name, string(v))
		}
		gauge(proofDesc, proof, o.key.Namespace, o.key.Name)
		gauge(intervalDesc, o.spec.Interval.Seconds(), o.key.Namespace, o.key.Name)
		if up, known := isUp(counts); known {
			gauge(upDesc, up, o.key.Namespace, o.key.Name)
		}
	}
	return all
}

// standing counts the targets by verdict, and gives when the one was proved
// whose proof is the oldest, in seconds since 1970; 0 when one never was.
func (o *object) standing() (counts map[Verdict]int, proof float64) {
	counts = map[Verdict]int{}
	var oldest time.Time
	never := len(o.targets) == 0
	for _, t := range o.targets {
		counts[t.verdict]++
		never = never || t.lastProof.IsZero()
		if oldest.IsZero() || t.lastProof.Before(oldest) {
			oldest = t.lastProof
		}
	}
	if never {
		return counts, 0
	}
	return counts, float64(oldest.UnixMilli()) / 1000
}

// isUp says whether all targets answer; known is false while that is not known.
func isUp(counts map[Verdict]int) (up float64, known bool) {
	switch {
	case counts[Failing] > 0:
		return 0, true
	case counts[Pending] > 0:
		return 0, false
	}
	return 1, counts[Proved]+counts[AuthRequired] > 0
}

// due is how many of the queue could start now.
func (l *lane) due(now time.Time) (n int) {
	for _, t := range l.queue {
		if !t.due.After(now) {
			n++
		}
	}
	return n
}
