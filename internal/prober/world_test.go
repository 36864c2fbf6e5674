// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// The tests run in a synctest bubble: the real clock and real goroutines,
// with a time that jumps when everything waits. Nothing sleeps.

const (
	interval = 30 * time.Second
	timeout  = 10 * time.Second
)

// world is what is probed in a test: behaviours by target URL.
type world struct {
	t     *testing.T
	p     *Prober
	start time.Time
	stop  func()

	mu    sync.Mutex
	does  map[string]func(context.Context, mcpprobe.Target) mcpprobe.Report
	calls []seen
	wakes []Key
}

// seen is one probe: at so many milliseconds since the start.
type seen struct {
	URL    string
	At     time.Duration
	Report bool
	Era    mcpprobe.Era
	Over   mcpprobe.Transport
}

// newWorld starts a prober; jitter is what its source of jitter gives.
func newWorld(t *testing.T, change func(*Options)) *world {
	w := &world{t: t, start: time.Now(), does: map[string]func(context.Context, mcpprobe.Target) mcpprobe.Report{}}
	opts := Options{Probe: w.probe, Jitter: func() float64 { return 0 }}
	if change != nil {
		change(&opts)
	}
	w.p = New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := w.p.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-w.p.Wake():
				w.mu.Lock()
				w.wakes = append(w.wakes, e.Object)
				w.mu.Unlock()
			}
		}
	}()
	w.stop = func() { cancel(); <-done }
	synctest.Wait()
	return w
}

func (w *world) probe(ctx context.Context, t mcpprobe.Target) mcpprobe.Report {
	w.mu.Lock()
	do := w.does[t.URL]
	w.calls = append(w.calls, seen{URL: t.URL, At: time.Since(w.start), Report: t.ReportOnly, Era: t.EraHint, Over: t.TransportHint})
	w.mu.Unlock()
	if t.Timeout != timeout {
		w.t.Errorf("timeout %s", t.Timeout)
	}
	if do == nil {
		return proved()
	}
	return do(ctx, t)
}

func (w *world) set(url string, do func(context.Context, mcpprobe.Target) mcpprobe.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.does[url] = do
}

// times at which url was probed in full, or by report.
func (w *world) times(url string, report bool) (at []time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.URL == url && c.Report == report {
			at = append(at, c.At)
		}
	}
	return at
}

func (w *world) wakeups() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.wakes)
}

// until moves time to so long after the start.
func (w *world) until(at time.Duration) {
	time.Sleep(at - time.Since(w.start))
	synctest.Wait()
}

func proved() mcpprobe.Report {
	return mcpprobe.Report{Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, Era: mcpprobe.EraLegacy, Transport: mcpprobe.TransportSSE}
}

func gives(r mcpprobe.Report) func(context.Context, mcpprobe.Target) mcpprobe.Report {
	return func(context.Context, mcpprobe.Target) mcpprobe.Report { return r }
}

func refused() mcpprobe.Report {
	return mcpprobe.Report{Outcome: mcpprobe.ConnectionRefused, Step: mcpprobe.StepDial}
}

// blackHole answers nothing until the probe's time is over.
func blackHole(ctx context.Context, t mcpprobe.Target) mcpprobe.Report {
	select {
	case <-ctx.Done():
		return mcpprobe.Report{Outcome: mcpprobe.Canceled}
	case <-time.After(t.Timeout):
		return mcpprobe.Report{Outcome: mcpprobe.Timeout, Step: mcpprobe.StepTools}
	}
}

var key = Key{Namespace: "team-a", Name: "search"}

func spec(targets ...Target) Spec {
	return Spec{Interval: interval, Timeout: timeout, FailureThreshold: 3, Targets: targets}
}

func pod(name string) Target {
	return Target{ID: "uid-" + name, Name: name, Identity: "1", Probe: mcpprobe.Target{URL: name}}
}

func (w *world) verdict(url string) Verdict {
	w.t.Helper()
	for _, t := range w.p.Result(key).Targets {
		if t.Name == url {
			return t.Verdict
		}
	}
	w.t.Fatalf("no target %s", url)
	return ""
}

func seconds(at []time.Duration) (s []string) {
	for _, d := range at {
		s = append(s, fmt.Sprintf("%g", d.Seconds()))
	}
	return s
}

func wantTimes(t *testing.T, got []time.Duration, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, seconds(got)); diff != "" {
		t.Errorf("probed at seconds (-want +got):\n%s", diff)
	}
}
