// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import "time"

const (
	// confirmTime is spent waiting, in all, between a first failure and the
	// one that turns the verdict: 2 s and 4 s with a threshold of 3.
	confirmTime = 6 * time.Second
	// retryFloor is the first wait after a confirmed failure; it doubles.
	retryFloor = 5 * time.Second
	// youthTime is for how long a target that was never proved is asked
	// every youthRetry, since it is likely to be starting.
	youthTime  = 2 * time.Minute
	youthRetry = 5 * time.Second

	// Polling of a pod's report while it loads a catalog.
	pollFloor = 250 * time.Millisecond
	pollCap   = time.Second
	pollTime  = 15 * time.Second
)

// rest is the time between a success and the next probe. It is never longer
// than the interval, on which the promise of freshness rests. After a first
// result it spreads over half the interval, so that what was started together
// does not stay together; later it jitters by 5%.
func rest(interval time.Duration, first bool, jitter float64) time.Duration {
	share := 0.05
	if first {
		share = 0.5
	}
	return interval - time.Duration(share*jitter*float64(interval))
}

// confirmDelay is the wait after the given number of failures in a row (1 is
// the first), as long as they are fewer than the threshold. All waits up to
// the threshold add up to confirmTime at most.
func confirmDelay(failures, threshold int) time.Duration {
	if threshold > 3 {
		return confirmTime / time.Duration(threshold-1)
	}
	return 2 * time.Second * time.Duration(failures)
}

// retry is the wait after a failure.
func (t *target) retry(spec Spec, verdict Verdict, now time.Time, jitter float64) time.Duration {
	if t.failures < spec.FailureThreshold {
		return min(confirmDelay(t.failures, spec.FailureThreshold), spec.Interval)
	}
	if verdict == AuthRequired {
		return rest(spec.Interval, false, jitter)
	}
	delay := backoff(t.failures-spec.FailureThreshold, spec.Interval)
	if t.lastProof.IsZero() && now.Sub(t.since) < youthTime {
		delay = min(delay, youthRetry)
	}
	return rest(delay, false, jitter)
}

// backoff doubles from retryFloor up to the interval.
func backoff(n int, interval time.Duration) time.Duration {
	delay := retryFloor
	for range n {
		if delay >= interval {
			break
		}
		delay *= 2
	}
	return min(delay, interval)
}

// startPolling opens the time for polling; the first poll is after delay.
func (t *target) startPolling(now time.Time, delay time.Duration) {
	t.pollDue, t.pollEnd, t.pollDelay = now.Add(delay), now.Add(pollTime), pollFloor
}

func (t *target) stopPolling() {
	t.pollDue, t.pollEnd, t.pollSpent = time.Time{}, time.Time{}, true
}

// pollOn plans the next poll, or ends polling: then the full probes, once an
// interval, will see the catalog.
func (t *target) pollOn(now time.Time) {
	t.pollDue = now.Add(t.pollDelay)
	t.pollDelay = min(t.pollDelay*3/2, pollCap)
	if t.pollDue.After(t.pollEnd) {
		t.stopPolling()
	}
}

// afterPoll plans what follows a read of the report alone.
func (t *target) afterPoll(now time.Time) {
	if t.catalogDone() {
		t.stopPolling()
		// The list must be of that digest too: look at once.
		t.fullDue = now
		return
	}
	t.pollOn(now)
}

// afterFull plans the polling that follows a full probe. That reads the
// report before the lists, so with the wanted digest in the report the lists
// are of that catalog or a newer one and nothing is left to look at.
func (t *target) afterFull(now time.Time) {
	switch {
	case t.catalogDone():
		t.stopPolling()
	case !t.pollEnd.IsZero():
		t.pollOn(now)
	case !t.pollSpent && t.pod != nil:
		t.startPolling(now, pollFloor)
	}
}
