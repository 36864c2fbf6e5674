// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func serverKey(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("s%02d", n)}
}

// admitted asks for the first n servers and counts who may begin.
func admitted(r *rollouts, n int) int {
	count := 0
	for i := range n {
		if r.admit(serverKey(i)) {
			count++
		}
	}
	return count
}

// TestRoomForRollouts: two until one was proved, then as many as allowed, none
// while two have failed.
func TestRoomForRollouts(t *testing.T) {
	r := newRollouts(0)
	step := func(what string, want int) {
		t.Helper()
		if got := admitted(r, 20); got != want {
			t.Errorf("%s: %d may have the image, want %d", what, got, want)
		}
	}
	step("at first", 2)
	r.set(serverKey(0), rolloutFailed)
	step("after a failure", 2)
	r.set(serverKey(0), rolloutUnderway)
	r.worked()
	step("after a success", DefaultServerRollouts)
	r.set(serverKey(0), rolloutDone)
	step("while a mark is there", DefaultServerRollouts)
	r.drop(serverKey(0))
	if r.admit(serverKey(1)); r.admit(serverKey(30)) != true {
		t.Error("nobody follows one that is through")
	}
	if stopped := r.set(serverKey(1), rolloutFailed); stopped {
		t.Error("one failure stops the rest")
	}
	if stopped := r.set(serverKey(2), rolloutFailed); !stopped {
		t.Error("two failures do not")
	}
	r.drop(serverKey(3))
	if r.admit(serverKey(40)) {
		t.Error("one begins although two have failed")
	}
	if !r.admit(serverKey(1)) {
		t.Error("one that failed is kept from another image")
	}
}

// TestWaitingAreWoken: as many as there is room for, in order.
func TestWaitingAreWoken(t *testing.T) {
	r := newRollouts(3)
	r.worked()
	admitted(r, 6)
	if _, _, waiting := r.numbers(); waiting != 3 || len(r.wake) != 0 {
		t.Fatalf("%d wait, %d are woken", waiting, len(r.wake))
	}
	r.drop(serverKey(1))
	if len(r.wake) != 1 {
		t.Fatalf("%d are woken for one place", len(r.wake))
	}
	if woken := <-r.wake; woken.Object != serverKey(3) || !r.admit(woken.Object) {
		t.Errorf("woken is %s", woken.Object)
	}
	// One that is gone waits no longer.
	r.drop(serverKey(4))
	if _, _, waiting := r.numbers(); waiting != 1 {
		t.Errorf("%d wait", waiting)
	}
}

// TestSeedOfRollouts: what a former operator began counts, once.
func TestSeedOfRollouts(t *testing.T) {
	r := newRollouts(5)
	for _, n := range []int{1, 7} {
		err := r.seed(func() (map[types.NamespacedName]rolloutState, error) {
			return map[types.NamespacedName]rolloutState{serverKey(n): rolloutFailed, serverKey(n + 1): rolloutFailed}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, failed, _ := r.numbers(); failed != 2 {
		t.Errorf("%d failed", failed)
	}
	if r.admit(serverKey(20)) {
		t.Error("one begins although two had failed before the restart")
	}
}
