// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// maxCallers whose windows a budget keeps apart. With more at a time the rest
// share one window: that is hard on them, but a budget never opens, and memory
// has a bound.
const maxCallers = 65536

// budget is how many calls each caller has in a window. A window begins with
// the first call in it. It is guarded by limits.mu.
type budget struct {
	config  serverconfig.Budget
	windows map[string]*window
	swept   time.Time
}

type window struct {
	ends time.Time
	used int32
}

func newBudget(config serverconfig.Budget) *budget {
	return &budget{config: config, windows: map[string]*window{}}
}

// left says whether the caller has a call left, and else how long until there
// is one again.
func (b *budget) left(caller string, now time.Time) (ok bool, wait time.Duration) {
	w := b.windows[b.name(caller, now)]
	if w == nil || !now.Before(w.ends) || w.used < b.config.Calls {
		return true, 0
	}
	return false, w.ends.Sub(now)
}

// take uses one call.
func (b *budget) take(caller string, now time.Time) {
	name := b.name(caller, now)
	w := b.windows[name]
	if w == nil || !now.Before(w.ends) {
		w = &window{ends: now.Add(time.Duration(b.config.WindowSeconds) * time.Second)}
		b.windows[name] = w
	}
	w.used++
}

// shared is the name of the window that callers beyond maxCallers have in
// common; no caller has it.
const shared = ""

// name of the caller's window.
func (b *budget) name(caller string, now time.Time) string {
	if _, known := b.windows[caller]; known || len(b.windows) < maxCallers {
		return caller
	}
	if b.sweep(now); len(b.windows) < maxCallers {
		return caller
	}
	return shared
}

// sweep drops windows that are over, once a second at most: it looks at all.
func (b *budget) sweep(now time.Time) {
	if now.Sub(b.swept) < time.Second {
		return
	}
	b.swept = now
	for name, w := range b.windows {
		if !now.Before(w.ends) {
			delete(b.windows, name)
		}
	}
}
