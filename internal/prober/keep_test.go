// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// lasting is what a modern server with lists that hold for ttl answers. Lists
// that are offered are kept, as the client does.
type lasting struct {
	ttl    time.Duration
	change func(*mcpprobe.Report)
	// read are the times at which the lists were read.
	read  []time.Duration
	start time.Time
	tools string
}

func (l *lasting) answer(_ context.Context, t mcpprobe.Target) mcpprobe.Report {
	r := mcpprobe.Report{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Era: mcpprobe.EraModern, TTL: &l.ttl}
	if t.Kept != nil {
		r.ListsKept, r.Tools = true, t.Kept.Tools
	} else {
		l.read = append(l.read, time.Since(l.start))
		r.Tools = mcpprobe.ToolList{State: mcpprobe.ToolsListed, Tools: []mcpprobe.Tool{{Name: l.tools}}}
	}
	if l.change != nil {
		l.change(&r)
	}
	return r
}

// How often lists are read follows what the server says, within bounds; how
// often it is asked at all never does.
func TestListsAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		ttl      time.Duration
		interval time.Duration
		change   func(*mcpprobe.Report)
		target   func(*Target)
		read     []string
	}{
		"for a day":            {ttl: 24 * time.Hour, read: []string{"0", "90", "180", "270"}},
		"for two minutes":      {ttl: 2 * time.Minute, read: []string{"0", "90", "180", "270"}},
		"for 40 s":             {ttl: 40 * time.Second, read: []string{"0", "60", "120", "180", "240", "300"}},
		"less than a probe":    {ttl: 5 * time.Second, read: []string{"0", "30", "60", "90", "120", "150", "180", "210", "240", "270", "300"}},
		"not at all":           {ttl: 0, read: []string{"0", "30", "60", "90", "120", "150", "180", "210", "240", "270", "300"}},
		"long intervals":       {ttl: 24 * time.Hour, interval: 150 * time.Second, read: []string{"0", "300"}},
		"longer ones":          {ttl: 24 * time.Hour, interval: 300 * time.Second, read: []string{"0", "300"}},
		"announces changes":    {ttl: time.Hour, change: func(r *mcpprobe.Report) { r.ListChanged = true }, read: []string{"0", "60", "120", "180", "240", "300"}},
		"a legacy server":      {ttl: time.Hour, change: func(r *mcpprobe.Report) { r.Era = mcpprobe.EraLegacy }, read: []string{"0", "30", "60", "90", "120", "150", "180", "210", "240", "270", "300"}},
		"without a time":       {change: func(r *mcpprobe.Report) { r.TTL = nil }, read: []string{"0", "30", "60", "90", "120", "150", "180", "210", "240", "270", "300"}},
		"many behind one name": {ttl: time.Hour, target: func(t *Target) { t.Shared = true }, read: []string{"0", "30", "60", "90", "120", "150", "180", "210", "240", "270", "300"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				w := newWorld(t, func(o *Options) { o.Registerer = registry })
				defer w.stop()
				server := &lasting{ttl: tc.ttl, change: tc.change, start: w.start, tools: "alpha"}
				w.set("a", server.answer)
				target := pod("a")
				if tc.target != nil {
					tc.target(&target)
				}
				s := spec(target)
				if tc.interval > 0 {
					s.Interval = tc.interval
				}
				w.p.Ensure(key, s)
				w.until(301 * time.Second)
				wantTimes(t, server.read, tc.read...)
				if asked, want := len(w.times("a", false)), 1+int(300*time.Second/s.Interval); asked != want {
					t.Errorf("asked %d times, want %d: once an interval whatever the lists' time is", asked, want)
				}
				kept := float64(len(w.times("a", false)) - len(server.read))
				if got := counter(t, registry, "espalier_probe_lists_kept_total"); got != kept {
					t.Errorf("%g probes counted that kept lists, want %g", got, kept)
				}
				if w.wakeups() != 1 {
					t.Errorf("%d wake-ups for one fact", w.wakeups())
				}
			})
		})
	}
}

func counter(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}

// A tool that changes while the server says that its lists hold is seen, and
// told, within three intervals, wherever in the time the change falls.
func TestKeptListsHideNoChangeForLong(t *testing.T) {
	for at := time.Second; at < 3*interval; at += 13 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			defer w.stop()
			server := &lasting{ttl: 24 * time.Hour, start: w.start, tools: "alpha"}
			w.set("a", server.answer)
			w.p.Ensure(key, spec(pod("a")))
			w.until(at)
			w.set("a", (&lasting{ttl: 24 * time.Hour, start: w.start, tools: "beta"}).answer)
			w.until(at + 3*interval)
			if seen := w.p.Result(key).Targets[0].Report.Tools.Tools[0].Name; seen != "beta" || w.wakeups() != 2 {
				t.Errorf("a change after %s: %s is told after three intervals, %d wake-ups", at, seen, w.wakeups())
			}
		})
	}
}

// A dead server is told of within the bound whatever time its lists had left,
// and its lists are read again when it is back.
func TestKeptListsDelayNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		server := &lasting{ttl: 24 * time.Hour, start: w.start, tools: "alpha"}
		w.set("a", server.answer)
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.set("a", blackHole)
		w.until(interval + 3*timeout + 6*time.Second)
		if v := w.verdict("a"); v != Failing {
			t.Fatalf("verdict %s at the bound", v)
		}
		w.set("a", server.answer)
		w.until(interval + 3*timeout + 6*time.Second + interval)
		if v := w.verdict("a"); v != Proved || len(server.read) != 2 {
			t.Errorf("verdict %s, lists read %d times", v, len(server.read))
		}
	})
}

// One failure, and the lists are read with the next proof: what failed may
// have been replaced by something else.
func TestListsAreReadAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		server := &lasting{ttl: 24 * time.Hour, start: w.start, tools: "alpha"}
		w.set("a", server.answer)
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.set("a", gives(refused()))
		w.until(31 * time.Second)
		w.set("a", server.answer)
		w.until(40 * time.Second)
		wantTimes(t, server.read, "0", "32")
	})
}

// A pod that should load another catalog has its lists read as soon as it has
// it: what was listed before is of the old one.
func TestListsOfAnotherCatalogAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		loaded := "sha256:1"
		server := &lasting{ttl: 24 * time.Hour, start: w.start, tools: "alpha"}
		server.change = func(r *mcpprobe.Report) { r.Pod = &podreport.Report{CatalogDigest: loaded} }
		w.set("a", server.answer)
		target := pod("a")
		target.Probe.ReportURL, target.WantCatalogDigest = "report", "sha256:1"
		w.p.Ensure(key, spec(target))
		w.until(10 * time.Second)
		loaded = "sha256:2"
		target.WantCatalogDigest = "sha256:2"
		w.p.Ensure(key, spec(target))
		w.until(11 * time.Second)
		wantTimes(t, server.read, "0", "10")
	})
}

// Lists that changed while they were read are read again at once, but not
// over and over.
func TestListsThatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		server := &lasting{ttl: time.Hour, start: w.start, tools: "alpha", change: func(r *mcpprobe.Report) { r.ListsMoved = true }}
		w.set("a", server.answer)
		w.p.Ensure(key, spec(pod("a")))
		w.until(65 * time.Second)
		wantTimes(t, server.read, "0", "2", "32", "34", "64")
	})
}
