// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/mcpprobe/fakemcp"
)

// The prober with the real client on a real connection: a server that comes,
// freezes and recovers, told by wake-ups alone, and no session left at any time.
func TestOnTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	fake := fakemcp.New()
	server := httptest.NewServer(fake)
	defer server.Close()
	defer fake.Release()
	client := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}})
	p := New(Options{Probe: client.Probe, Drain: client.Close})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()

	p.Ensure(key, Spec{Interval: time.Second, Timeout: 300 * time.Millisecond, FailureThreshold: 3, Targets: []Target{
		{ID: "service", Name: "search", Identity: "1", Probe: mcpprobe.Target{URL: server.URL + "/mcp"}},
	}})
	waitFor := func(want Verdict) TargetObservation {
		t.Helper()
		for {
			obs := p.Result(key).Targets[0]
			if obs.Verdict == want {
				return obs
			}
			select {
			case <-p.Wake():
			case <-ctx.Done():
				t.Fatalf("verdict %s, want %s", obs.Verdict, want)
			}
		}
	}
	waitFor(Proved)
	// Frozen but for DELETE: the one of the last proof may be under way.
	fake.On(fakemcp.Any, func(c *fakemcp.Call) {
		if c.R.Method != http.MethodDelete {
			c.Hang()
			return
		}
		c.Default()
	})
	frozen := time.Now()
	obs := waitFor(Failing)
	if obs.Report.Outcome != mcpprobe.Timeout || time.Since(frozen) > time.Minute {
		t.Errorf("%s after %s", obs.Report.Outcome, time.Since(frozen))
	}
	if err := fake.SetMode("ok"); err != nil {
		t.Fatal(err)
	}
	waitFor(Proved)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if fake.OpenSessions() != 0 || fake.MostSessions() > 1 {
		t.Errorf("%d sessions open, %d at once", fake.OpenSessions(), fake.MostSessions())
	}
	if n := fake.Count(mcp.MethodToolsCall) + fake.Count("GET") + fake.Count("HEAD"); n != 0 {
		t.Errorf("%d requests that a probe must not make", n)
	}
}

// A modern server whose lists hold is asked to discover with each probe, and
// for its lists with every third, by the real client.
func TestKeptListsOnTheWire(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	fake := fakemcp.New()
	fake.Settings.Modern, fake.Settings.Legacy, fake.Settings.TTLMs = true, false, 3_600_000
	listed := make(chan int, 16)
	fake.On(mcp.MethodDiscover, func(c *fakemcp.Call) {
		listed <- fake.Count(mcp.MethodToolsList)
		c.WellBehaved()
	})
	server := httptest.NewServer(fake)
	defer server.Close()
	client := mcpprobe.New(mcpprobe.Options{Policy: mcpprobe.Policy{AllowLoopback: true}})
	p := New(Options{Probe: client.Probe, Drain: client.Close})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.Start(ctx) }()
	p.Ensure(key, Spec{Interval: time.Second, Timeout: time.Second, FailureThreshold: 3, Targets: []Target{
		{ID: "external", Name: "search", Identity: "1", Probe: mcpprobe.Target{URL: server.URL + "/mcp"}},
	}})
	// How many lists had been read when each probe began.
	for i, want := range []int{0, 1, 1, 1, 2} {
		select {
		case got := <-listed:
			if got != want {
				t.Errorf("probe %d began after %d lists, want %d", i+1, got, want)
			}
		case <-ctx.Done():
			t.Fatalf("probe %d did not begin", i+1)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
