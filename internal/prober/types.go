// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prober decides when to probe whom. It keeps its results in memory
// and wakes whoever is interested when facts changed; it knows no Kubernetes
// API and writes nothing.
//
// A target is probed at once when it is new, then once an interval. A first
// failure is confirmed by further probes within seconds before the verdict
// turns, and a target that keeps failing is asked less often, up to once an
// interval. While a pod has not loaded the catalog it should have, its report
// alone is polled several times a second.
//
// Targets do not wait for each other: a probe that takes long gives its slot
// back and finishes in a lane of its own, where a target that timed out last
// begins.
package prober

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
)

// Key names an object whose targets are probed: an MCPServer.
type Key = types.NamespacedName

// Spec is what should be probed for one object.
type Spec struct {
	// Interval between probes of a target, from the end of one to the
	// beginning of the next.
	Interval time.Duration
	// Timeout of one probe.
	Timeout time.Duration
	// FailureThreshold is how many probes in a row must fail before a verdict
	// turns to Failing; at least 1.
	FailureThreshold int
	// Targets with distinct IDs.
	Targets []Target
}

// Target is one endpoint of an object.
type Target struct {
	// ID tells the targets of one object apart for as long as they live: the
	// UID of a pod, or "service", or "external".
	ID string
	// Name for people: that of the pod.
	Name string
	// Identity is a hash of all that a result holds for: pod UID, template
	// hash, probe spec, credential version. When it changes, what was known
	// is forgotten and a probe under way is cancelled. The wanted catalog is
	// not part of it.
	Identity string
	// Shared: several endpoints answer there in turn, so that what one said
	// does not hold for the next.
	Shared bool
	// Probe says how to reach it. EraHint is used until a probe has found out
	// the era; TransportHint, Kept, Timeout and ReportOnly are set by the prober.
	Probe mcpprobe.Target
	// WantCatalogDigest is the catalog that the pod's report should name;
	// empty for targets that do not report.
	WantCatalogDigest string
}

// Verdict on a target.
type Verdict string

const (
	// Pending: no verdict yet; Report is the latest, if any.
	Pending Verdict = "Pending"
	// Proved: it answered as an MCP server, and since then did not fail
	// FailureThreshold times in a row.
	Proved Verdict = "Proved"
	// AuthRequired: it is evidently an MCP server that wants a credential
	// which the probe does not have.
	AuthRequired Verdict = "AuthRequired"
	// Failing: FailureThreshold probes in a row failed.
	Failing Verdict = "Failing"
)

// Observation is what is known of an object's targets.
type Observation struct {
	// Known is false for an object that was never ensured, or was forgotten.
	Known bool
	// Targets in the order of their names, then IDs.
	Targets []TargetObservation
	// Lagging: a probe of some target is overdue by two intervals. What is
	// said of it may be stale.
	Lagging bool
}

// TargetObservation is what is known of one target. Everything in it is of
// the target's present Identity.
type TargetObservation struct {
	ID       string
	Name     string
	Identity string

	Verdict Verdict
	// Report that the verdict rests on: the last success while Proved (even
	// when a failure since then waits for confirmation), else the latest.
	// Nil before the first result.
	Report *mcpprobe.Report
	// Latest full report, whatever it says. Nil before the first result.
	Latest *mcpprobe.Report
	// Pod is the newest report of the pod itself, from whichever probe; nil
	// when there was none. It may be newer than Report: whoever judges a list
	// by a digest must take the digest from Report.Pod, which was read just
	// before that list.
	Pod *podreport.Report
	// LastProof is when the last proof began; zero when never.
	LastProof time.Time
	// LastProbe is when the latest full probe ended; zero when never.
	LastProbe time.Time
	// Since is when this target, with this identity, was first ensured.
	Since time.Time
	// Failures in a row, not bounded by the threshold.
	Failures int
	// EverConnected: some probe of this identity got a connection.
	EverConnected bool
	// Lagging: its probe is overdue by two intervals.
	Lagging bool
}
