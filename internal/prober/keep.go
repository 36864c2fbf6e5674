// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"time"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// What a server says of how long its lists hold is a hint for how often they
// are read, never for how often it has to prove that it lives. A hint from a
// peer must not make a status lie for longer than is documented, so it is
// bounded: by a number of probes, so that a proof of the lists is younger than
// three intervals, and by a time for long intervals.
const (
	// keepProbes may pass in a row without reading the lists again.
	keepProbes = 2
	// keepProbesTold likewise, of a server that declares to announce changes:
	// its hint counts on a client that listens, and the probe does not.
	keepProbesTold = 1
	// keepTime is the most that lists are kept.
	keepTime = 5 * time.Minute
	// movedDelay is after how long lists are read again that changed while
	// they were read. Their pages may be of two states.
	movedDelay = 2 * time.Second
)

// kept is the report whose lists a probe at now may keep; nil when it has to
// read them.
func (t *target) kept(now time.Time) *mcpprobe.Report {
	b := t.basis
	if b == nil || t.verdict != Proved || t.failures > 0 || b.Era != mcpprobe.EraModern || b.TTL == nil ||
		b.ListsMoved || t.spec.Shared || !t.catalogDone() {
		return nil
	}
	probes := keepProbes
	if b.ListChanged {
		probes = keepProbesTold
	}
	if t.keptFor >= probes || now.Sub(t.listed) >= min(*b.TTL, keepTime) {
		return nil
	}
	return b
}

// afterProof notes when the lists of a proof were read, and says when the next
// probe is due: early, once, when the lists changed meanwhile.
func (t *target) afterProof(report *mcpprobe.Report, began time.Time, rest time.Duration) time.Duration {
	t.keptFor++
	if !report.ListsKept {
		t.listed, t.keptFor = began, 0
	}
	t.early = report.ListsMoved && !t.early
	if t.early {
		return min(movedDelay, rest)
	}
	return rest
}
