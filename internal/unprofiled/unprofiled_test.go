// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package unprofiled

import (
	"runtime"
	"testing"
)

func TestRate(t *testing.T) {
	if runtime.MemProfileRate != 0 {
		t.Errorf("one allocation in %d bytes is sampled", runtime.MemProfileRate)
	}
	Not()
	t.Cleanup(func() { runtime.MemProfileRate = 0 })
	if runtime.MemProfileRate != rate || rate == 0 {
		t.Errorf("one allocation in %d bytes is sampled, want %d", runtime.MemProfileRate, rate)
	}
}
