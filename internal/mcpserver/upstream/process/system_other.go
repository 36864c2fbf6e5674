// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import (
	"context"
	"os"
	"syscall"
)

// The shared server runs on Linux. Elsewhere this package is part of the
// kubectl plugin, which starts no child: one that were started would have
// neither a group nor orphans that are taken in.

func attributes() *syscall.SysProcAttr { return nil }

func kill(pid int, _ syscall.Signal) {
	if found, err := os.FindProcess(max(pid, -pid)); err == nil {
		_ = found.Kill()
	}
}

// Reap takes in the orphans that children leave behind, on Linux.
func Reap(ctx context.Context) { <-ctx.Done() }
