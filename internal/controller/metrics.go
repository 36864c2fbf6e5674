// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// metrics of the controllers. Series of a server end with it.
type metrics struct {
	pokes    *prometheus.CounterVec
	applies  *prometheus.CounterVec
	statuses *prometheus.CounterVec
	ready    *prometheus.GaugeVec
	tools    *prometheus.GaugeVec
	healthy  *prometheus.GaugeVec
	contract *prometheus.GaugeVec
	synced   *prometheus.GaugeVec
}

// RegisterMetrics registers the metrics of the controllers as Setup does, for
// who describes them.
func RegisterMetrics(registerer prometheus.Registerer) {
	newMetrics(registerer)
	newRollouts(1).register(registerer)
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	perServer := []string{"namespace", "name"}
	m := &metrics{
		pokes:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_catalog_pokes_total", Help: "Times a pod was told to load its catalog, the first time (first) or again (repeat)."}, []string{"attempt"}),
		applies:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_child_applies_total", Help: "Children written, by kind."}, []string{"kind"}),
		statuses: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "espalier_status_writes_total", Help: "Statuses written, by kind."}, []string{"kind"}),
		ready:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_mcpserver_ready", Help: "1 while the MCPServer is Ready, else 0."}, perServer),
		tools:    prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_mcpserver_tools", Help: "Tools proved on the wire; absent while unknown."}, perServer),
		healthy:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_mcpserver_healthy_replicas", Help: "Replicas that take traffic and were proved."}, perServer),
		contract: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_mcpserver_contract_met", Help: "1 while the MCPServer keeps its contract, 0 while it does not; absent without one and while unknown."}, perServer),
		synced:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "espalier_mcpserver_synced", Help: "1 while each replica of the MCPServer that takes traffic serves the wanted catalog, 0 while one does not; absent without a catalog and while unknown."}, perServer),
	}
	if registerer != nil {
		registerer.MustRegister(m.pokes, m.applies, m.statuses, m.ready, m.tools, m.healthy, m.contract, m.synced)
	}
	// A rate needs the series before the first poke.
	m.pokes.WithLabelValues(pokeFirst)
	m.pokes.WithLabelValues(pokeRepeat)
	return m
}

// register shows the numbers of rollouts of the server image.
func (r *rollouts) register(registerer prometheus.Registerer) {
	if registerer == nil {
		return
	}
	for state, number := range map[string]func() int{
		"underway": func() int { n, _, _ := r.numbers(); return n },
		"failed":   func() int { _, n, _ := r.numbers(); return n },
		"waiting":  func() int { _, _, n := r.numbers(); return n },
	} {
		registerer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "espalier_server_image_rollouts", Help: "MCPServers that are to have another image of the shared server, by state: underway, failed, waiting. Two that failed stop the rest.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return float64(number()) }))
	}
}

// Values of the label attempt.
const (
	pokeFirst  = "first"
	pokeRepeat = "repeat"
)

func (m *metrics) poked(again bool) {
	attempt := pokeFirst
	if again {
		attempt = pokeRepeat
	}
	m.pokes.WithLabelValues(attempt).Inc()
}

func (m *metrics) applied(kind string) { m.applies.WithLabelValues(kind).Inc() }

func (m *metrics) statusWritten(kind string) { m.statuses.WithLabelValues(kind).Inc() }

func (m *metrics) observeServer(key types.NamespacedName, status mcpv1.MCPServerStatus) {
	ready := 0.0
	if meta.IsStatusConditionTrue(status.Conditions, mcpv1.ConditionReady) {
		ready = 1
	}
	m.ready.WithLabelValues(key.Namespace, key.Name).Set(ready)
	setOrDrop(m.tools, key, status.ToolCount)
	setOrDrop(m.healthy, key, status.HealthyReplicas)
	var met *int32
	switch c := conditionVerdict(status.Conditions, mcpv1.ConditionContractMet); {
	case c.reason == mcpv1.ReasonContractMet:
		met = ptr.To[int32](1)
	case c.reason == mcpv1.ReasonDrifted:
		met = ptr.To[int32](0)
	}
	setOrDrop(m.contract, key, met)
	var synced *int32
	switch c := meta.FindStatusCondition(status.Conditions, mcpv1.ConditionSynced); {
	case c == nil:
	case c.Status == metav1.ConditionFalse:
		synced = ptr.To[int32](0)
	case c.Status == metav1.ConditionTrue && c.Reason == mcpv1.ReasonSynced:
		synced = ptr.To[int32](1)
	}
	setOrDrop(m.synced, key, synced)
}

func setOrDrop(gauge *prometheus.GaugeVec, key types.NamespacedName, value *int32) {
	if value == nil {
		gauge.DeleteLabelValues(key.Namespace, key.Name)
		return
	}
	gauge.WithLabelValues(key.Namespace, key.Name).Set(float64(*value))
}

func (m *metrics) forgetServer(key types.NamespacedName) {
	for _, gauge := range []*prometheus.GaugeVec{m.ready, m.tools, m.healthy, m.contract, m.synced} {
		gauge.DeleteLabelValues(key.Namespace, key.Name)
	}
}
