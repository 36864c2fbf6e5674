// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package memorylimit

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

func TestFollow(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	const container = 512 << 20
	for _, tt := range []struct {
		name  string
		limit memlimit.Provider
		env   string
		want  int64
	}{
		{"nine tenths of the container's", memlimit.Limit(container), "", container * 9 / 10},
		{"no limit", func() (uint64, error) { return 0, memlimit.ErrNoLimit }, "", math.MaxInt64},
		{"not known", func() (uint64, error) { return 0, errors.New("no cgroups") }, "", 1 << 40},
		{"GOMEMLIMIT wins", memlimit.Limit(container), "1TiB", 1 << 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			debug.SetMemoryLimit(1 << 40)  // As the runtime does with GOMEMLIMIT=1TiB.
			t.Setenv("GOMEMLIMIT", tt.env) // It is restored after the test.
			if tt.env == "" {
				must(t, os.Unsetenv("GOMEMLIMIT"))
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			follow(ctx, slog.New(slog.DiscardHandler), tt.limit)
			if got := debug.SetMemoryLimit(-1); got < tt.want-1 || got > tt.want {
				t.Errorf("the limit is %d, want %d", got, tt.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
