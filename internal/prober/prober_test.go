// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// The tests run in a synctest bubble: the real clock and real goroutines,
// with a time that jumps when everything waits. Nothing sleeps.

// A new target is probed at once, then once an interval; the era and the transport are remembered.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		if w.p.Result(key).Known {
			t.Error("known before it was ensured")
		}
		w.p.Ensure(key, spec(pod("a")))
		w.until(100 * time.Second)
		wantTimes(t, w.times("a", false), "0", "30", "60", "90")
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.calls[0].Era != mcpprobe.EraUnknown || w.calls[1].Era != mcpprobe.EraLegacy {
			t.Error("the era is not remembered")
		}
		if w.calls[0].Over != "" || w.calls[1].Over != mcpprobe.TransportSSE {
			t.Error("the transport is not remembered")
		}
		if len(w.wakes) != 1 {
			t.Errorf("%d wake-ups for one fact", len(w.wakes))
		}
	})
}

// Jitter only shortens, so that the promise of freshness holds; after the
// first result it spreads.
func TestJitter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Jitter = func() float64 { return 0.5 } })
		defer w.stop()
		w.p.Ensure(key, spec(pod("a")))
		w.until(90 * time.Second)
		wantTimes(t, w.times("a", false), "0", "22.5", "51.75", "81")
	})
}

// A server that freezes right after a success is told within the bound of
// the design: interval + threshold x timeout + 6 s, for every threshold.
func TestFailureIsConfirmedInTime(t *testing.T) {
	for _, threshold := range []int{1, 2, 3, 4, 7} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, nil)
			defer w.stop()
			s := spec(pod("a"))
			s.FailureThreshold = threshold
			w.p.Ensure(key, s)
			w.until(time.Second)
			w.set("a", blackHole)
			bound := interval + time.Duration(threshold)*timeout + 6*time.Second
			w.until(interval + time.Duration(threshold)*timeout - time.Second)
			if v := w.verdict("a"); v != Proved {
				t.Errorf("threshold %d: verdict %s before the threshold", threshold, v)
			}
			w.until(bound)
			if v := w.verdict("a"); v != Failing {
				t.Errorf("threshold %d: verdict %s at the bound", threshold, v)
			}
			if n := len(w.times("a", false)); n < 1+threshold || n > 2+threshold {
				t.Errorf("threshold %d: %d probes", threshold, n)
			}
			if w.wakeups() != 2 {
				t.Errorf("threshold %d: %d wake-ups, want one each for proved and failing", threshold, w.wakeups())
			}
		})
	}
}

// Confirmation at 2 s and 4 s, backoff up to the interval, and back at the
// first success.
func TestBackoffAndRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.set("a", gives(refused()))
		w.until(150 * time.Second)
		wantTimes(t, w.times("a", false), "0", "30", "32", "36", "41", "51", "71", "101", "131")
		obs := w.p.Result(key).Targets[0]
		if obs.Verdict != Failing || obs.Failures != 8 || obs.Report.Outcome != mcpprobe.ConnectionRefused || obs.LastProof != w.start {
			t.Errorf("observation %+v", obs)
		}
		w.set("a", nil)
		w.until(162 * time.Second)
		if obs := w.p.Result(key).Targets[0]; obs.Verdict != Proved || obs.Failures != 0 {
			t.Errorf("observation %+v", obs)
		}
		if w.wakeups() != 3 {
			t.Errorf("%d wake-ups, want proved, failing, proved", w.wakeups())
		}
	})
}

// One failure between successes turns nothing and wakes nobody; the report
// stays the last success.
func TestOneFailureIsNoFact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.set("a", gives(refused()))
		w.until(31 * time.Second)
		obs := w.p.Result(key).Targets[0]
		if obs.Verdict != Proved || obs.Report.Outcome != mcpprobe.Proved || obs.Latest.Outcome != mcpprobe.ConnectionRefused || obs.Failures != 1 {
			t.Errorf("observation %+v", obs)
		}
		w.set("a", nil)
		w.until(40 * time.Second)
		if obs := w.p.Result(key).Targets[0]; obs.Failures != 0 || w.wakeups() != 1 {
			t.Errorf("%d failures, %d wake-ups", obs.Failures, w.wakeups())
		}
	})
}

// A target that was never proved is likely to be starting: it is asked every
// few seconds for two minutes (case C13: not backed off to minutes).
func TestStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.set("a", gives(mcpprobe.Report{Outcome: mcpprobe.NotMCP, Step: mcpprobe.StepInitialize}))
		w.p.Ensure(key, spec(pod("a")))
		w.until(4 * time.Second)
		if v := w.verdict("a"); v != Pending {
			t.Errorf("verdict %s after two failures", v)
		}
		w.until(75 * time.Second)
		if v := w.verdict("a"); v != Failing {
			t.Errorf("verdict %s", v)
		}
		w.set("a", nil)
		w.until(80 * time.Second)
		if v := w.verdict("a"); v != Proved {
			t.Errorf("verdict %s five seconds after it came up", v)
		}
	})
}

// AuthRequired is a verdict of its own, asked once an interval; from Proved
// it is confirmed like a failure.
func TestAuthRequired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		auth := gives(mcpprobe.Report{Outcome: mcpprobe.AuthRequired, Step: mcpprobe.StepInitialize})
		w.set("a", auth)
		w.p.Ensure(key, spec(pod("a"), pod("b")))
		w.until(100 * time.Second)
		wantTimes(t, w.times("a", false), "0", "30", "60", "90")
		if v := w.verdict("a"); v != AuthRequired {
			t.Errorf("verdict %s", v)
		}
		w.set("b", auth)
		w.until(121 * time.Second)
		if v := w.verdict("b"); v != Proved {
			t.Errorf("verdict %s after one refusal", v)
		}
		w.until(160 * time.Second)
		if v := w.verdict("b"); v != AuthRequired {
			t.Errorf("verdict %s after three", v)
		}
		wantTimes(t, w.times("b", false), "0", "30", "60", "90", "120", "122", "126", "156")
	})
}

// A changed identity drops what was known and cancels what runs; a target
// that is no longer named is gone; so is a forgotten object.
func TestIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		canceled := 0
		w.set("a", func(ctx context.Context, target mcpprobe.Target) mcpprobe.Report {
			r := blackHole(ctx, target)
			if r.Outcome == mcpprobe.Canceled {
				canceled++
			}
			return r
		})
		w.p.Ensure(key, spec(pod("a"), pod("b")))
		w.until(time.Second)
		changed := pod("a")
		changed.Identity = "2"
		w.set("a", nil)
		w.p.Ensure(key, spec(changed, pod("b")))
		w.until(2 * time.Second)
		if canceled != 1 {
			t.Error("the outdated probe was not cancelled")
		}
		wantTimes(t, w.times("a", false), "0", "1")
		if obs := w.p.Result(key).Targets[0]; obs.Identity != "2" || obs.Verdict != Proved || obs.Failures != 0 {
			t.Errorf("observation %+v", obs)
		}
		w.p.Ensure(key, spec(changed))
		if n := len(w.p.Result(key).Targets); n != 1 {
			t.Errorf("%d targets", n)
		}
		w.p.Forget(key)
		w.until(200 * time.Second)
		if w.p.Result(key).Known || len(w.times("a", false)) != 2 || len(w.times("b", false)) != 1 {
			t.Error("probed after it was forgotten")
		}
	})
}

// Ensure with nothing new moves nothing.
func TestEnsureAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		for at := range 65 {
			w.p.Ensure(key, spec(pod("a")))
			w.until(time.Duration(at) * time.Second)
		}
		wantTimes(t, w.times("a", false), "0", "30", "60")
		// A shorter interval is taken up at once.
		s := spec(pod("a"))
		s.Interval = 5 * time.Second
		w.p.Ensure(key, s)
		w.until(76 * time.Second)
		wantTimes(t, w.times("a", false), "0", "30", "60", "69", "74")
	})
}

// A target is never probed twice at once, whatever is ensured meanwhile and
// however long it takes (case C13).
func TestNoTwoProbesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		var running, most atomic.Int32
		w.set("a", func(ctx context.Context, target mcpprobe.Target) mcpprobe.Report {
			defer running.Add(-1)
			most.Store(max(most.Load(), running.Add(1)))
			return blackHole(ctx, target)
		})
		for i := range 120 {
			target := reporter("a", fmt.Sprintf("sha256:%d", i))
			s := spec(target)
			s.Interval = time.Duration(1+i%3) * time.Second
			w.p.Ensure(key, s)
			w.until(time.Duration(i) * time.Second)
		}
		if most.Load() != 1 || len(w.times("a", false)) < 8 {
			t.Errorf("%d at once, %d in all", most.Load(), len(w.times("a", false)))
		}
	})
}

// Fifty black holes among five hundred: the healthy ones are probed as if
// they were alone, and every black hole is told in time.
func TestBlackHolesDelayNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *Options) { o.Workers = 8; o.SlowWorkers = 64 })
		defer w.stop()
		for i := range 500 {
			name := fmt.Sprintf("t%d", i)
			if i%10 == 0 {
				w.set(name, blackHole)
			}
			w.p.Ensure(Key{Namespace: "n", Name: name}, spec(pod(name)))
		}
		for second := 1; second <= 300; second++ {
			w.until(time.Duration(second) * time.Second)
			if lag := w.p.Lag(); second > 20 && lag > time.Second {
				t.Fatalf("lag %s at second %d", lag, second)
			}
		}
		for i := range 500 {
			name := fmt.Sprintf("t%d", i)
			n := len(w.times(name, false))
			verdict := w.p.Result(Key{Namespace: "n", Name: name}).Targets[0].Verdict
			if i%10 == 0 {
				if verdict != Failing {
					t.Errorf("black hole %s: %s", name, verdict)
				}
			} else if n < 10 || verdict != Proved {
				t.Errorf("%s: %d probes in 300 s, %s", name, n, verdict)
			}
		}
		if err := w.p.Check(nil); err != nil {
			t.Errorf("health: %v", err)
		}
	})
}

// After a restart the whole fleet is seen within seconds, at the given rate,
// and spread from then on.
func TestStartUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := newWorld(t, func(o *Options) {
			o.Rate = 100
			o.Jitter = func() float64 { n++; return float64(n%1000) / 1000 }
		})
		defer w.stop()
		for i := range 1000 {
			name := fmt.Sprintf("t%d", i)
			w.p.Ensure(Key{Namespace: "n", Name: name}, spec(pod(name)))
		}
		w.until(11 * time.Second)
		w.mu.Lock()
		early := len(w.calls)
		w.mu.Unlock()
		if early != 1000 {
			t.Errorf("%d probes in the first 11 s", early)
		}
		w.until(45 * time.Second)
		buckets := map[int]int{}
		w.mu.Lock()
		for _, c := range w.calls[1000:] {
			buckets[int(c.At.Seconds())]++
		}
		w.mu.Unlock()
		for second, count := range buckets {
			if count > 101 {
				t.Errorf("%d probes in second %d", count, second)
			}
		}
	})
}

// Stop cancels what runs, waits for it, and drains.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drained := false
		w := newWorld(t, func(o *Options) { o.Drain = func() { drained = true } })
		w.set("a", blackHole)
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.stop()
		if time.Since(w.start) != time.Second || !drained {
			t.Errorf("stopped after %s, drained %v", time.Since(w.start), drained)
		}
		if obs := w.p.Result(key).Targets[0]; obs.Failures != 0 || obs.Report != nil || obs.Verdict != Pending {
			t.Errorf("a cancelled probe was counted: %+v", obs)
		}
	})
}

// Wake-ups are coalesced and never hold up a probe, even when nobody reads.
func TestWakeNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var flip atomic.Int64
		p := New(Options{Jitter: func() float64 { return 0 }, Probe: func(context.Context, mcpprobe.Target) mcpprobe.Report {
			r := proved()
			if flip.Add(1)%2 == 0 {
				r.ProtocolVersion = "2025-06-18"
			}
			return r
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Start(ctx) }()
		for i := range 200 {
			p.Ensure(Key{Name: fmt.Sprint(i)}, spec(pod(fmt.Sprint(i))))
		}
		time.Sleep(10 * time.Minute)
		counts := map[Key]int{}
		for range 200 {
			e := <-p.Wake()
			counts[e.Object]++
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for k, n := range counts {
			if n > 2 {
				t.Errorf("%s told %d times", k, n)
			}
		}
	})
}
