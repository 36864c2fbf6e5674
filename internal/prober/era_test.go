// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// The era of a server that fails is held on to, since a second handshake may
// leave a session behind; now and then it is found out anew.
func TestEraOfAFailingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		w.p.Ensure(key, spec(pod("a")))
		w.until(time.Second)
		w.set("a", blackHole)
		for at := time.Minute; len(w.times("a", false)) < 2*eraDoubt+3; at += time.Minute {
			w.until(at)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		var without []int
		for i, c := range w.calls[:2*eraDoubt+3] {
			if c.Era == mcpprobe.EraUnknown {
				without = append(without, i)
			}
		}
		if diff := cmp.Diff([]int{0, eraDoubt + 1, 2*eraDoubt + 1}, without); diff != "" {
			t.Errorf("probes that found out the era (-want +got):\n%s", diff)
		}
	})
}

// What is known of the era from before counts until it is found out.
func TestEraFromBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil)
		defer w.stop()
		target := pod("a")
		target.Probe.EraHint = mcpprobe.EraModern
		w.set("a", gives(refused()))
		w.p.Ensure(key, spec(target))
		w.until(2 * time.Second)
		w.set("a", gives(proved())) // Which is of the legacy era.
		w.until(time.Minute)
		w.mu.Lock()
		defer w.mu.Unlock()
		if first, last := w.calls[0].Era, w.calls[len(w.calls)-1].Era; first != mcpprobe.EraModern || last != mcpprobe.EraLegacy {
			t.Errorf("era %q at first, %q at last", first, last)
		}
	})
}
