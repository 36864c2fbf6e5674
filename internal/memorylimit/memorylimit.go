// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memorylimit tells Go's runtime how much memory its container may
// have, so that it collects garbage sooner before it is killed for it.
package memorylimit

import (
	"context"
	"log/slog"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// share of the container's limit that Go may use: the rest is for what the
	// runtime does not count, pages of the binary among it.
	share = 0.9
	// again is how often the limit is looked at: a pod can be resized in place.
	again = time.Minute
)

// Follow sets the limit and keeps it current until ctx ends. Without a limit of
// the container there is none for Go. The environment variable GOMEMLIMIT wins;
// AUTOMEMLIMIT gives another share, or is "off".
func Follow(ctx context.Context, log *slog.Logger) {
	follow(ctx, log, memlimit.FromCgroup)
}

func follow(ctx context.Context, log *slog.Logger, limit memlimit.Provider) {
	got, err := memlimit.Set(memlimit.WithProvider(limit), memlimit.WithRatio(share), memlimit.WithRefreshInterval(ctx, again))
	if err != nil {
		// Outside of containers there is often nobody to say it.
		log.DebugContext(ctx, "The container's memory limit is not known", "error", err.Error())
		return
	}
	log.DebugContext(ctx, "Memory limit of the Go runtime", "bytes", got)
}
