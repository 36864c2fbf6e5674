// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// The series of an object vanish with it, and no label is a peer's word.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := newWorld(t, func(o *Options) { o.Registerer = registry })
		defer w.stop()
		w.set("b", gives(refused()))
		w.p.Ensure(key, spec(pod("a"), pod("b")))
		w.until(10 * time.Second)
		want := []string{
			"espalier_mcpserver_last_proof_timestamp_seconds{search,team-a}=0",
			"espalier_mcpserver_probe_interval_seconds{search,team-a}=30",
			"espalier_mcpserver_probe_targets{search,team-a,AuthRequired}=0",
			"espalier_mcpserver_probe_targets{search,team-a,Failing}=1",
			"espalier_mcpserver_probe_targets{search,team-a,Pending}=0",
			"espalier_mcpserver_probe_targets{search,team-a,Proved}=1",
			"espalier_mcpserver_up{search,team-a}=0",
			"espalier_probe_lag_seconds{}=0",
			"espalier_probe_lists_kept_total{}=0",
			"espalier_probe_queue_depth{main}=0", "espalier_probe_queue_depth{report}=0", "espalier_probe_queue_depth{slow}=0",
			"espalier_prober_last_round_timestamp_seconds{}=9.4668481e+08",
			"espalier_probes_running{main}=0", "espalier_probes_running{report}=0", "espalier_probes_running{slow}=0",
			"espalier_probes_total{full,ConnectionRefused}=3", "espalier_probes_total{full,Proved}=1",
		}
		if diff := cmp.Diff(want, series(t, registry)); diff != "" {
			t.Errorf("series (-want +got):\n%s", diff)
		}
		w.p.Forget(key)
		for _, s := range series(t, registry) {
			if slices.Contains(want[:7], s) {
				t.Errorf("%s outlives its object", s)
			}
		}
	})
}

// A server is up while all its targets answer, be it that they want a
// credential; before the first verdict nobody knows.
func TestUp(t *testing.T) {
	for name, tc := range map[string]struct {
		counts map[Verdict]int
		up     float64
		known  bool
	}{
		"no target":               {nil, 1, false},
		"awaited":                 {map[Verdict]int{Pending: 1}, 0, false},
		"one of two awaited":      {map[Verdict]int{Pending: 1, Proved: 1}, 0, false},
		"proved":                  {map[Verdict]int{Proved: 2}, 1, true},
		"wants a credential":      {map[Verdict]int{AuthRequired: 1}, 1, true},
		"one of two fails":        {map[Verdict]int{Failing: 1, Proved: 1}, 0, true},
		"one fails, one is young": {map[Verdict]int{Failing: 1, Pending: 1}, 0, true},
	} {
		up, known := isUp(tc.counts)
		if known != tc.known || known && up != tc.up {
			t.Errorf("%s: up %g, known %v", name, up, known)
		}
	}
}

// The handshake's time is counted by outcome, and only where there was one.
func TestHandshakeDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := newWorld(t, func(o *Options) { o.Registerer = registry })
		defer w.stop()
		took := proved()
		took.Handshake = 20 * time.Millisecond
		w.set("a", gives(took))
		w.set("b", gives(mcpprobe.Report{Outcome: mcpprobe.InvalidTarget, Step: mcpprobe.StepDial}))
		w.p.Ensure(key, spec(pod("a"), pod("b")))
		w.until(time.Second)
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() != "espalier_probe_handshake_duration_seconds" {
				continue
			}
			m := f.GetMetric()
			if len(m) != 1 || m[0].GetLabel()[0].GetValue() != "Proved" || m[0].GetHistogram().GetSampleSum() != 0.02 {
				t.Errorf("handshakes: %v", m)
			}
			return
		}
		t.Error("no handshake was counted")
	})
}

// series gives the counters and gauges as text, sorted.
func series(t *testing.T, registry *prometheus.Registry) (all []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				if labels != "" {
					labels += ","
				}
				labels += l.GetValue()
			}
			value := m.GetGauge().GetValue() + m.GetCounter().GetValue()
			if m.GetHistogram() == nil {
				all = append(all, fmt.Sprintf("%s{%s}=%g", f.GetName(), labels, value))
			}
		}
	}
	slices.Sort(all)
	return all
}

// A scrape while targets come and go, and are proved, holds nothing up. The
// number of series is larger than what a registry buffers.
func TestScrapeWhileProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		w := newWorld(t, func(o *Options) { o.Registerer, o.Rate = registry, 1e6 })
		defer w.stop()
		var work sync.WaitGroup
		work.Go(func() {
			for range 100 {
				if _, err := registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
		for range 4 {
			work.Go(func() {
				for i := range 500 {
					k := Key{Namespace: "team-a", Name: strconv.Itoa(i)}
					w.p.Ensure(k, spec(pod(strconv.Itoa(i))))
				}
			})
		}
		work.Wait()
		synctest.Wait()
		if got := len(series(t, registry)); got < 500*5 {
			t.Errorf("%d series", got)
		}
	})
}
