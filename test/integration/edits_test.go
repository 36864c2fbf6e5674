// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/prober"
)

// editTime is by when an edit is told as served.
const editTime = 30 * time.Second

// quiet is how long nothing must happen to be sure of it.
const quiet = time.Second

// TestEditsWithTheProber: the controllers with the real prober. Each edit is
// told as served soon, and never before each pod serves it; nothing rolls out.
func TestEditsWithTheProber(t *testing.T) {
	f := newFleet(t)
	twoTools(f.world)
	f.rollOut()
	f.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
	f.toolBecomes("alpha", isServed)
	generation := f.generation()

	var took []time.Duration
	for i := range 20 {
		text := fmt.Sprintf("'%d'", i)
		began := time.Now()
		if i%4 == 3 {
			must(t, api.Client.Delete(f.ctx, get(f.world, "alpha", &mcpv1.MCPTool{})))
			began = time.Now()
		}
		f.tool("alpha", fmt.Sprintf(`title: "%d", expression: {text: "%s"}`, i/2, text))
		f.eventually(editTime, fmt.Sprintf("edit %d", i), func() string {
			tool := get(f.world, "alpha", &mcpv1.MCPTool{})
			if problem := differs(tool.Status.Conditions, isServed, tool.Status.ObservedGeneration, tool.Generation); problem != "" {
				return problem
			}
			for pod, serves := range f.serving("alpha") {
				if serves != text {
					t.Errorf("alpha %s is told as served, and pod %s serves %s", text, pod, serves)
				}
			}
			return ""
		})
		took = append(took, time.Since(began))
		f.toolBecomes("beta", isServed)
	}
	slices.Sort(took)
	t.Logf("edit to Served: median %s, longest %s", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	f.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced", "Reconciling": "-"})
	if f.generation() != generation {
		t.Error("an edit rolled out")
	}
	before := len(f.writes.all())
	f.tool("beta", `expression: {text: "'edited'"}`)
	f.toolBecomes("beta", isServed)
	f.becomes(map[string]string{"Synced": "True Synced"})
	// The catalog, a poke for each of three pods, and two statuses of the
	// server and of the tool: pending, done.
	if lines := f.writes.all()[before:]; len(lines) > 10 {
		t.Errorf("one edit wrote %d times: %v", len(lines), lines)
	}
}

// TestRestartWithTheProber: the operator is replaced beside healthy pods, and
// beside one that answers nothing. It writes nothing while it finds out again.
func TestRestartWithTheProber(t *testing.T) {
	t.Parallel()
	for name, frozen := range map[string]string{"healthy": "", "one is frozen": "10.0.0.2"} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			twoTools(f.world)
			f.rollOut()
			f.becomes(map[string]string{"Ready": "True Proved", "Synced": "True Synced"})
			f.toolBecomes("alpha", isServed)
			want := "True Proved"
			if frozen != "" {
				f.freeze(frozen)
				want = "False Timeout"
				f.stop() // A new prober asks at once.
				f.startOperator()
			}
			f.becomesWithin(healed, map[string]string{"Ready": want})
			settled := func() string {
				for _, target := range f.probes.Result(f.key("web")).Targets {
					if target.Verdict == prober.Pending {
						return target.Name + " is not judged"
					}
				}
				return ""
			}
			f.eventually(healed, "verdicts", settled)
			versions := f.versions()
			f.stop()
			f.startOperator()
			f.eventually(healed, "targets", func() string { return equalTo(int32(len(f.probes.Result(f.key("web")).Targets)), 3) })
			f.eventually(healed, "verdicts after the restart", settled)
			// The operator acts upon a verdict within milliseconds.
			f.never(quiet, "a write", func() string { return fmt.Sprint(f.writes.all()) }, "[]")
			if diff := cmp.Diff(versions, f.versions()); diff != "" {
				t.Errorf("a restart changed something:\n%s", diff)
			}
		})
	}
}
