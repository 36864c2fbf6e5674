// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// A prober without the workers it needs says so: per target, in its health,
// and by waking who has to say "stale".
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, func(o *Options) { o.Workers = 1; o.SlowWorkers = 1 })
		defer w.stop()
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		stuck := func(_ context.Context, _ mcpprobe.Target) mcpprobe.Report {
			<-release
			return proved()
		}
		for _, name := range []string{"s1", "s2"} {
			w.set(name, stuck)
			w.p.Ensure(Key{Name: name}, spec(pod(name)))
		}
		w.until(80 * time.Second)
		if w.p.Result(key).Lagging || w.p.Check(nil) != nil {
			t.Error("lagging before two intervals")
		}
		w.until(100 * time.Second)
		if !w.p.Result(key).Lagging || !w.p.Result(key).Targets[0].Lagging || w.p.Check(nil) == nil || w.p.Lag() < 2*interval {
			t.Errorf("lag %s, health %v", w.p.Lag(), w.p.Check(nil))
		}
		if w.wakeups() != 2 {
			t.Errorf("%d wake-ups, want proved and lagging", w.wakeups())
		}
		close(release)
		w.until(110 * time.Second)
		if w.p.Result(key).Lagging || w.p.Check(nil) != nil {
			t.Error("still lagging")
		}
	})
}

// After a restart what was known holds until the first result or for two
// intervals: a target that was not probed by then lags, like any other. It does
// not fail the health check: a fleet that is seen for the first time takes its
// time, and a restart would not help.
func TestLagOfTheFirstResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, func(o *Options) { o.Workers = 1; o.SlowWorkers = 1 })
		defer w.stop()
		stuck := func(context.Context, mcpprobe.Target) mcpprobe.Report {
			<-release
			return proved()
		}
		for _, name := range []string{"s1", "s2"} {
			w.set(name, stuck)
			w.p.Ensure(Key{Name: name}, spec(pod(name)))
		}
		w.until(2 * time.Second)
		w.p.Ensure(key, spec(pod("a")))
		w.until(2*time.Second + 2*interval)
		if w.p.Result(key).Lagging || w.wakeups() != 0 {
			t.Error("lagging before two intervals")
		}
		w.until(2*time.Second + 2*interval + scanPeriod)
		if !w.p.Result(key).Lagging || w.wakeups() != 1 || w.p.Check(nil) != nil {
			t.Errorf("lagging %v, %d wake-ups, health %v", w.p.Result(key).Lagging, w.wakeups(), w.p.Check(nil))
		}
		close(release)
		w.until(2*time.Second + 2*interval + 2*scanPeriod)
		if w.p.Result(key).Lagging || w.verdict("a") != Proved {
			t.Error("still lagging")
		}
	})
}

// A loop that is stuck, by a clock that does not go or a deadlock, is seen from
// outside; a prober that was not started, on a replica that does not lead, is well.
func TestCheckOfALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Probe: func(context.Context, mcpprobe.Target) mcpprobe.Report { return proved() }})
		if err := p.Check(nil); err != nil {
			t.Errorf("not started: %v", err)
		}
		p.startDue(t.Context())
		time.Sleep(maxBeat)
		if err := p.Check(nil); err != nil {
			t.Errorf("before its time: %v", err)
		}
		time.Sleep(time.Second)
		if p.Check(nil) == nil {
			t.Error("a loop that does not turn is well")
		}
	})
}
