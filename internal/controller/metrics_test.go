// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// TestMetricsEndWithTheServer: an unknown count has no series, and a server
// that is gone has none at all.
func TestMetricsEndWithTheServer(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := newMetrics(registry)
	series := func() map[string]float64 {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]float64{}
		for _, family := range families {
			if !strings.HasPrefix(family.GetName(), "espalier_mcpserver_") {
				continue
			}
			for _, metric := range family.GetMetric() {
				out[strings.TrimPrefix(family.GetName(), "espalier_mcpserver_")] = metric.GetGauge().GetValue()
			}
		}
		return out
	}
	key := keyOf("ns", "web")
	status := mcpv1.MCPServerStatus{ToolCount: ptr.To[int32](3), HealthyReplicas: ptr.To[int32](2)}
	m.observeServer(key, status)
	if got := series(); len(got) != 3 || got["tools"] != 3 || got["healthy_replicas"] != 2 || got["ready"] != 0 {
		t.Errorf("series %v", got)
	}
	status.ToolCount = nil
	m.observeServer(key, status)
	if got := series(); len(got) != 2 {
		t.Errorf("an unknown count has a series: %v", got)
	}
	for reason, want := range map[string]float64{mcpv1.ReasonContractMet: 1, mcpv1.ReasonDrifted: 0} {
		v := verdict{metav1.ConditionTrue, reason, "m"}
		if want == 0 {
			v.status = metav1.ConditionFalse
		}
		setCondition(&status.Conditions, mcpv1.ConditionContractMet, v, 1, metav1.Now())
		m.observeServer(key, status)
		if got, ok := series()["contract_met"]; !ok || got != want {
			t.Errorf("%s: contract_met is %v, %v", reason, got, ok)
		}
	}
	setCondition(&status.Conditions, mcpv1.ConditionContractMet, unknown(mcpv1.ReasonPending, "m"), 1, metav1.Now())
	setCondition(&status.Conditions, mcpv1.ConditionReady, yes(mcpv1.ReasonProved, "m"), 1, metav1.Now())
	m.observeServer(key, status)
	if got := series(); len(got) != 2 || got["ready"] != 1 {
		t.Errorf("an unknown contract has a series, or Ready none: %v", got)
	}
	for _, c := range []struct {
		status metav1.ConditionStatus
		reason string
		want   map[string]float64
	}{
		{metav1.ConditionTrue, mcpv1.ReasonSynced, map[string]float64{"synced": 1}},
		{metav1.ConditionFalse, mcpv1.ReasonCatalogNotLoaded, map[string]float64{"synced": 0}},
		{metav1.ConditionTrue, mcpv1.ReasonNotApplicable, nil},
		{metav1.ConditionUnknown, mcpv1.ReasonPending, nil},
	} {
		status.Conditions = []metav1.Condition{{Type: mcpv1.ConditionSynced, Status: c.status, Reason: c.reason}}
		m.observeServer(key, status)
		got, there := series()["synced"]
		if want, wanted := c.want["synced"]; there != wanted || got != want {
			t.Errorf("%s %s: synced is %v, %v", c.status, c.reason, got, there)
		}
	}
	status.Conditions[0] = metav1.Condition{Type: mcpv1.ConditionSynced, Status: metav1.ConditionFalse, Reason: mcpv1.ReasonListMismatch}
	m.observeServer(key, status)
	m.forgetServer(key)
	if got := series(); len(got) != 0 {
		t.Errorf("a server that is gone has series: %v", got)
	}
}

// TestPokesAreCounted: the first of a catalog apart from those that follow,
// which say that the kubelets' watches are behind.
func TestPokesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	w, p := newWorld(t, `{}`), newPoker(t)
	p.metrics = newMetrics(registry)
	counted := func(when string, first, repeat float64) {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, family := range families {
			if family.GetName() == "espalier_catalog_pokes_total" {
				for _, metric := range family.GetMetric() {
					got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
				}
			}
		}
		if len(got) != 2 || got[pokeFirst] != first || got[pokeRepeat] != repeat {
			t.Errorf("%s %v were counted", when, got)
		}
	}
	w.serving(1)
	counted("before any", 0, 0)
	w.tool("alpha", `expression: {text: "'new'"}`)
	headStart(t, w, p)
	p.poke(t, w)
	counted("after one", 1, 0)
	for range 2 {
		w.later(10 * time.Second)
		p.poke(t, w)
	}
	counted("after three", 1, 2)
	w.tool("alpha", `expression: {text: "'newer'"}`)
	headStart(t, w, p)
	p.poke(t, w)
	counted("after the first of another catalog", 2, 2)
}
