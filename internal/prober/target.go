// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"encoding/json"
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// target is the state of one target. Guarded by Prober.mu.
type target struct {
	key  Key
	spec Target

	// Scheduling.
	due     time.Time // of the next action
	lane    int
	index   int // in the lane's queue, -1 outside
	cancel  func()
	dropped bool
	fullDue time.Time
	// pollDue is when the report is read alone; zero when it need not be.
	pollDue   time.Time
	pollEnd   time.Time
	pollDelay time.Duration
	// pollSpent: the time for polling for the wanted digest is over.
	pollSpent bool

	// Knowledge.
	since     time.Time
	verdict   Verdict
	basis     *mcpprobe.Report // what the verdict rests on
	latest    *mcpprobe.Report
	pod       *podreport.Report
	lastProof time.Time
	lastProbe time.Time
	failures  int
	connected bool
	era       mcpprobe.Era
	transport mcpprobe.Transport
	facts     string

	// listed is when the lists of the last proof were read, keptFor how many
	// proofs went without reading them since.
	listed  time.Time
	keptFor int
	// early: the next probe was brought forward, since lists had changed.
	early bool
}

func newTarget(key Key, spec Target, now time.Time) *target {
	return &target{key: key, spec: spec, index: -1, since: now, verdict: Pending, fullDue: now}
}

// setSpec takes a spec of the same identity and says whether the report has
// to be read soon.
func (t *target) setSpec(spec Target, now time.Time) bool {
	newDigest := spec.WantCatalogDigest != t.spec.WantCatalogDigest
	t.spec = spec
	if !newDigest {
		return false
	}
	t.stopPolling()
	t.pollSpent = false
	if t.catalogDone() || t.pod == nil || t.failures > 0 {
		// The next full probe is the one to find out.
		return false
	}
	t.startPolling(now, 0)
	return true
}

// catalogDone: nothing to wait for in the pod's report.
func (t *target) catalogDone() bool {
	return t.spec.WantCatalogDigest == "" || t.spec.Probe.ReportURL == "" ||
		(t.pod != nil && t.pod.CatalogDigest == t.spec.WantCatalogDigest)
}

// next says what t needs next and when.
func (t *target) next() (due time.Time, laneIndex int) {
	if !t.pollDue.IsZero() && t.pollDue.Before(t.fullDue) {
		return t.pollDue, laneReport
	}
	if t.latest != nil && t.latest.Outcome == mcpprobe.Timeout {
		return t.fullDue, laneSlow
	}
	return t.fullDue, laneMain
}

// probe is what is given to the client.
func (t *target) probe(spec Spec, reportOnly bool, now time.Time) mcpprobe.Target {
	probe := t.spec.Probe
	probe.ReportOnly = reportOnly
	probe.Timeout = spec.Timeout
	if t.era != mcpprobe.EraUnknown {
		probe.EraHint = t.era
	}
	probe.TransportHint, probe.Kept = t.transport, t.kept(now)
	if t.failures > 0 && t.failures%eraDoubt == 0 {
		probe.EraHint = mcpprobe.EraUnknown
	}
	return probe
}

// eraDoubt is how many failures in a row make it worth while to find out the
// era anew: another server may stand there by now. More often would open
// sessions at one that is frozen.
const eraDoubt = 10

// take takes in one report and plans what comes next.
func (t *target) take(spec Spec, report mcpprobe.Report, reportOnly bool, began, now time.Time, jitter func() float64) {
	if report.Pod != nil {
		t.pod = report.Pod
	}
	if reportOnly {
		t.afterPoll(now)
	} else {
		t.takeFull(spec, report, began, now, jitter)
		t.afterFull(now)
	}
	t.facts = t.factsNow()
}

func (t *target) takeFull(spec Spec, report mcpprobe.Report, began, now time.Time, jitter func() float64) {
	first := t.lastProbe.IsZero()
	t.latest, t.lastProbe = &report, now
	t.connected = t.connected || report.Outcome.Connected(report.Step)
	if report.Era != mcpprobe.EraUnknown {
		t.era = report.Era
	}
	if report.Transport != "" {
		t.transport = report.Transport
	}
	verdict := verdictOf(report.Outcome)
	if verdict == Proved {
		t.lastProof = began
	}
	// A proved server that suddenly wants a credential is confirmed like a failure.
	if verdict == Proved || (verdict == AuthRequired && t.verdict != Proved) {
		t.verdict, t.basis, t.failures = verdict, &report, 0
		t.fullDue = now.Add(t.afterProof(&report, began, rest(spec.Interval, first, jitter())))
		return
	}
	t.failures++
	if t.failures >= spec.FailureThreshold {
		t.verdict = verdict
	}
	if t.verdict == verdict || t.verdict == Pending {
		t.basis = &report
	}
	t.fullDue = now.Add(t.retry(spec, verdict, now, jitter()))
}

// verdictOf one outcome, before any threshold.
func verdictOf(outcome mcpprobe.Outcome) Verdict {
	switch outcome {
	case mcpprobe.Proved:
		return Proved
	case mcpprobe.AuthRequired:
		return AuthRequired
	}
	return Failing
}

// observe is what is told of t.
func (t *target) observe(spec Spec, now time.Time) TargetObservation {
	return TargetObservation{
		ID: t.spec.ID, Name: t.spec.Name, Identity: t.spec.Identity,
		Verdict: t.verdict, Report: t.basis, Latest: t.latest, Pod: t.pod,
		LastProof: t.lastProof, LastProbe: t.lastProbe, Since: t.since,
		Failures: t.failures, EverConnected: t.connected, Lagging: t.lagging(spec, now),
	}
}

// factsNow is a value of all that a status may say of t.
func (t *target) factsNow() string {
	facts := string(t.verdict)
	if t.basis != nil {
		facts += " " + t.basis.Facts()
	}
	if t.pod != nil {
		// Plain data; it cannot fail to encode.
		encoded, _ := json.Marshal(t.pod)
		facts += " " + string(encoded)
	}
	return facts
}

// lagIntervals overdue is when a target counts as lagging.
const lagIntervals = 2

func (t *target) lagging(spec Spec, now time.Time) bool {
	return t.cancel == nil && now.Sub(t.fullDue) > lagIntervals*spec.Interval
}
