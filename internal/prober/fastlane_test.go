// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// The tests run in a synctest bubble: the real clock and real goroutines,
// with a time that jumps when everything waits. Nothing sleeps.

func withReport(digest string) mcpprobe.Report {
	r := proved()
	r.Pod = &podreport.Report{Version: 1, CatalogDigest: digest}
	r.PodOutcome = mcpprobe.Proved
	return r
}

func reporter(name, digest string) Target {
	t := pod(name)
	t.Probe.ReportURL = "http://x/report"
	t.WantCatalogDigest = digest
	return t
}

// While a pod has not loaded the wanted catalog its report is polled; when it
// has, one full probe follows at once.
func TestFastLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set("a", gives(withReport("one")))
		w.p.Ensure(key, spec(reporter("a", "one")))
		w.until(10 * time.Second)
		wantTimes(t, w.times("a", true))
		w.p.Ensure(key, spec(reporter("a", "two")))
		w.until(10900 * time.Millisecond)
		wantTimes(t, w.times("a", true), "10", "10.25", "10.625")
		w.set("a", gives(withReport("two")))
		w.until(20 * time.Second)
		wantTimes(t, w.times("a", true), "10", "10.25", "10.625", "11.1875")
		wantTimes(t, w.times("a", false), "0", "11.1875")
		obs := w.p.Result(key).Targets[0]
		if obs.Pod.CatalogDigest != "two" || obs.Report.Pod.CatalogDigest != "two" || obs.Verdict != Proved {
			t.Errorf("observation %+v", obs)
		}
		// Loaded and listed come in one moment and may be told as one.
		if n := w.wakeups(); n < 2 || n > 3 {
			t.Errorf("%d wake-ups, want proved, loaded, listed", n)
		}
	})
}

// Polling ends after 15 s; full probes go on at their interval and see the
// catalog in the end.
func TestFastLaneGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set("a", gives(withReport("one")))
		w.p.Ensure(key, spec(reporter("a", "two")))
		w.until(29 * time.Second)
		polls := w.times("a", true)
		if len(polls) < 15 || len(polls) > 20 || polls[len(polls)-1] > 15*time.Second {
			t.Errorf("polled at %v", seconds(polls))
		}
		w.until(100 * time.Second)
		if n := len(w.times("a", true)); n != len(polls) {
			t.Errorf("%d polls after the time for them", n-len(polls))
		}
		wantTimes(t, w.times("a", false), "0", "30", "60", "90")
	})
}

// A poll that fails is no failure of the target.
func TestFastLaneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set("a", gives(withReport("one")))
		w.p.Ensure(key, spec(reporter("a", "one")))
		w.until(10 * time.Second)
		w.set("a", gives(refused()))
		w.p.Ensure(key, spec(reporter("a", "two")))
		w.until(20 * time.Second)
		if obs := w.p.Result(key).Targets[0]; obs.Verdict != Proved || obs.Failures != 0 || obs.Pod.CatalogDigest != "one" {
			t.Errorf("observation %+v", obs)
		}
	})
}
