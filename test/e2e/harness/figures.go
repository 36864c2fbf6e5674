// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"fmt"
	"slices"
	"time"
)

// Figures are durations that were measured.
type Figures []time.Duration

// Percentile is the smallest figure that p percent of the figures do not exceed.
func (f Figures) Percentile(p int) time.Duration {
	if len(f) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(f))
	return sorted[(len(sorted)*p+99)/100-1]
}

// Max is the largest figure.
func (f Figures) Max() time.Duration { return f.Percentile(100) }

// String gives the figures that matter.
func (f Figures) String() string {
	ms := func(d time.Duration) string { return d.Round(time.Millisecond).String() }
	return fmt.Sprintf("n=%d p50=%s p95=%s p99=%s max=%s",
		len(f), ms(f.Percentile(50)), ms(f.Percentile(95)), ms(f.Percentile(99)), ms(f.Max()))
}
