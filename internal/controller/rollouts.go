// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// DefaultServerRollouts is how many servers are given a new image of the
// shared server at once.
const DefaultServerRollouts = 5

// maxFailedRollouts is how many servers may fail with a new image before no
// more are given it. Until one was proved with it no more than so many try it:
// a bad image reaches no third server.
const maxFailedRollouts = 2

// rolloutState is how far a server is with the image.
type rolloutState int

const (
	// rolloutUnderway: not known yet whether it serves with the new image.
	rolloutUnderway rolloutState = iota
	// rolloutFailed: it does not. It may still come to.
	rolloutFailed
	// rolloutDone: it does; its mark is to be removed.
	rolloutDone
)

// rollouts says which servers may have the operator's image of the shared
// server, one after another. What it knows can be had again from the marks on
// Deployments and from statuses: it may be lost.
type rollouts struct {
	max int
	// wake tells servers that wait that there is room.
	wake chan event.TypedGenericEvent[types.NamespacedName]

	mu sync.Mutex
	// held are the servers that have been given the image and are not through.
	held map[types.NamespacedName]rolloutState
	// waiting for their turn.
	waiting map[types.NamespacedName]bool
	// proved: some server serves with the image.
	proved bool
	seeded bool
}

// wakeBuffer is more than can be woken at once; who is not woken looks again by
// itself.
const wakeBuffer = 1024

func newRollouts(limit int) *rollouts {
	return &rollouts{
		max: cmp.Or(limit, DefaultServerRollouts), wake: make(chan event.TypedGenericEvent[types.NamespacedName], wakeBuffer),
		held: map[types.NamespacedName]rolloutState{}, waiting: map[types.NamespacedName]bool{},
	}
}

// seed takes in what a former operator had begun; only the first call counts.
func (r *rollouts) seed(read func() (map[types.NamespacedName]rolloutState, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seeded {
		return nil
	}
	begun, err := read()
	if err != nil {
		return err
	}
	for key, state := range begun {
		r.held[key] = state
	}
	r.seeded = true
	return nil
}

// admit reports whether the server may have the image now. One that may not is
// told when it may.
func (r *rollouts) admit(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, held := r.held[key]; !held && r.room() == 0 {
		r.waiting[key] = true
		return false
	}
	delete(r.waiting, key)
	r.held[key] = rolloutUnderway
	return true
}

// room is how many more servers may begin.
func (r *rollouts) room() int {
	underway, failed := r.count()
	limit := r.max
	if !r.proved {
		limit = min(limit, maxFailedRollouts)
	}
	if failed >= maxFailedRollouts {
		return 0
	}
	return max(limit-underway-failed, 0)
}

// count gives how many hold a place: until their mark is gone, or failed.
func (r *rollouts) count() (underway, failed int) {
	for _, state := range r.held {
		if state == rolloutFailed {
			failed++
		} else {
			underway++
		}
	}
	return underway, failed
}

// set notes how far a server is that has been given the image. It reports
// whether that ended the rollouts for now.
func (r *rollouts) set(key types.NamespacedName, state rolloutState) (stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, before := r.count()
	r.held[key] = state
	_, after := r.count()
	r.wakeWaiting()
	return before < maxFailedRollouts && after >= maxFailedRollouts
}

// done reports whether the server is through, and its mark may go.
func (r *rollouts) done(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	state, held := r.held[key]
	return held && state == rolloutDone
}

// drop forgets a server that bears no mark any more, or is gone.
func (r *rollouts) drop(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, key)
	delete(r.waiting, key)
	r.wakeWaiting()
}

// worked notes that some server serves with the image.
func (r *rollouts) worked() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.proved {
		r.proved = true
		r.wakeWaiting()
	}
}

// known reports whether worked was called.
func (r *rollouts) known() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proved
}

// numbers for metrics.
func (r *rollouts) numbers() (underway, failed, waiting int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	underway, failed = r.count()
	return underway, failed, len(r.waiting)
}

// wakeWaiting wakes as many as there is room for, by name. They ask again.
func (r *rollouts) wakeWaiting() {
	room := r.room()
	if room == 0 || len(r.waiting) == 0 {
		return
	}
	keys := make([]types.NamespacedName, 0, len(r.waiting))
	for key := range r.waiting {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, key := range keys[:min(room, len(keys))] {
		select {
		case r.wake <- event.TypedGenericEvent[types.NamespacedName]{Object: key}:
		default:
		}
	}
}
