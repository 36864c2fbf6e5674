// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

// written makes a pass and writes its status unless that may wait.
func (w *world) written() bool {
	w.t.Helper()
	s := w.scope()
	status := serverStatus(s)
	if equal(w.server.Status, status) || s.postpone(&status) {
		w.requeue = s.requeueAfter
		return false
	}
	w.memory.unsaid = time.Time{}
	w.server = w.server.DeepCopy()
	w.server.Status = status
	return true
}

// starting is a world at its beginning, whose first verdict is written.
func starting(t *testing.T, spec string) *world {
	t.Helper()
	w := newWorld(t, spec)
	w.now = epoch
	w.deploy()
	w.deployment.Status.AvailableReplicas = 0
	if !w.written() {
		t.Fatal("the first verdict was not written")
	}
	return w
}

// TestStartIsWrittenTwice: the first verdict, and the proof. The numbers in
// between wait for it.
func TestStartIsWrittenTwice(t *testing.T) {
	w := starting(t, `{type: Container, container: {image: i}, replicas: 2}`)
	step := func(what string, want bool) {
		t.Helper()
		w.later(100 * time.Millisecond)
		if got := w.written(); got != want {
			t.Errorf("%s: written %t, want %t: %+v", what, got, want, w.server.Status.Conditions)
		}
	}
	one := w.pod("web-1")
	setReady(one, false)
	two := w.pod("web-2")
	setReady(two, false)
	step("pods that start", false)
	setReady(one, true)
	step("a pod that is ready", false)
	setReady(two, true)
	step("two that are", false)
	w.proved(one)
	step("one is proved", false)
	w.proved(two)
	step("both are", true)
	if got := condition(w.server.Status.Conditions, mcpv1.ConditionReady); got != "True Proved" {
		t.Error(got)
	}
	step("rest", false)
}

// TestProgressIsWrittenInTime: what waited is written after the pause, counted
// from the first of it.
func TestProgressIsWrittenInTime(t *testing.T) {
	w := starting(t, `{type: Container, container: {image: i}, replicas: 3}`)
	for i, name := range []string{"web-1", "web-2"} {
		w.later(time.Second)
		setReady(w.pod(name), false)
		if w.written() {
			t.Errorf("%s was written at once", name)
		}
		if want := progressPause - time.Duration(i)*time.Second; w.requeue != want {
			t.Errorf("%s: another pass after %s, want %s", name, w.requeue, want)
		}
	}
	w.later(time.Second)
	if !w.written() {
		t.Error("progress was not written after the pause")
	}
	if got := *w.server.Status.Replicas; got != 2 {
		t.Errorf("%d replicas are told", got)
	}
}

// TestTroubleIsWrittenAtOnce: whatever is more than progress never waits.
func TestTroubleIsWrittenAtOnce(t *testing.T) {
	tests := map[string]func(*world){
		"an image that cannot be pulled": func(w *world) {
			pod := w.pod("web-1")
			setReady(pod, false)
			waiting(pod, "ErrImagePull")
		},
		"an edit": func(w *world) { w.server.Generation++ },
		"a pod that is no MCP server": func(w *world) {
			w.failing(w.pod("web-1"), mcpprobe.NotMCP, mcpprobe.StepInitialize)
		},
		"a server that wants a credential": func(w *world) {
			w.observe(w.pod("web-1"), prober.AuthRequired, &mcpprobe.Report{Outcome: mcpprobe.AuthRequired})
		},
		"time that is over": func(w *world) { w.later(time.Hour) },
		"a proof":           func(w *world) { w.proved(w.pod("web-1")) },
	}
	for name, happens := range tests {
		t.Run(name, func(t *testing.T) {
			w := starting(t, `{type: Container, container: {image: i}}`)
			happens(w)
			if !w.written() {
				t.Errorf("not written: %+v", w.server.Status.Conditions)
			}
		})
	}
}
