// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operator tells whether an operator lives that keeps the status of a
// namespace true. A status is what was written last: without an operator a
// Ready that is True may be old.
package operator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/espalier-dev/espalier/internal/rivals"
)

// State is what is known of the operators of a cluster.
type State struct {
	// Unknown says in words why nothing is known; empty when Leases were read.
	Unknown string
	// Leases of operators.
	Leases []coordinationv1.Lease
	// Version of each operator by its namespace, where it can be read.
	Versions map[string]string
	// Now by the cluster's clock, when the Leases were read.
	Now time.Time
}

// Life of the operator that works on a namespace.
type Life struct {
	// Known is false when it could not be found out.
	Known bool
	// Alive: it renews its Lease.
	Alive bool
	// Renewed is when it did so last; zero when none ever did.
	Renewed time.Time
	// Namespace that it lives in; empty when there is none.
	Namespace string
	// Unknown says why it is not known.
	Unknown string
	// Now is when that was so, by the cluster's clock.
	Now time.Time
}

// defaultDuration is that of client-go, for a Lease that says none.
const defaultDuration = 15 * time.Second

// Of tells whether an operator lives that works on namespace. Of several the
// one that lives, or that did last.
func (s State) Of(namespace string) Life {
	life := Life{Known: s.Unknown == "", Unknown: s.Unknown, Now: s.Now}
	for i := range s.Leases {
		lease := &s.Leases[i]
		if lease.Spec.RenewTime == nil || !rivals.Covers(lease.Labels, namespace) {
			continue
		}
		renewed := lease.Spec.RenewTime.Time
		alive := s.alive(lease)
		if life.Namespace == "" || (alive && !life.Alive) || (alive == life.Alive && renewed.After(life.Renewed)) {
			life.Namespace, life.Renewed, life.Alive = lease.Namespace, renewed, alive
		}
	}
	return life
}

// alive: the Lease is held, and was renewed within twice its duration. A
// leader that did not within one has lost it; another may be about to take it.
func (s State) alive(lease *coordinationv1.Lease) bool {
	if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return false
	}
	lasts := defaultDuration
	if n := lease.Spec.LeaseDurationSeconds; n != nil {
		lasts = time.Duration(*n) * time.Second
	}
	return s.Now.Sub(lease.Spec.RenewTime.Time) < 2*lasts
}

// Down reports whether it is known that no operator lives.
func (l Life) Down() bool { return l.Known && !l.Alive }

// Ago is for how long its Lease has not been renewed, in kubectl's words.
func (l Life) Ago() string {
	if l.Renewed.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(l.Now.Sub(l.Renewed), 0))
}

// Since says since when nothing is known, for one that is down.
func (l Life) Since() string {
	if l.Renewed.IsZero() {
		return "not known: no operator ever worked here"
	}
	return "not known since " + l.Ago() + " ago"
}

// String says it in a sentence.
func (l Life) String() string {
	switch {
	case !l.Known:
		return "Whether proofs are fresh is not known: " + l.Unknown + "."
	case l.Alive:
		return fmt.Sprintf("Proofs are fresh: the operator in namespace %s lives.", l.Namespace)
	case l.Namespace == "":
		return "No operator works on this namespace: there is no Lease " + rivals.LeaseName + " for it."
	default:
		return fmt.Sprintf("No operator lives: Lease %s in namespace %s was renewed %s ago, and not since. What a status says is as old as that, or older.", rivals.LeaseName, l.Namespace, l.Ago())
	}
}

// Lives are those of namespaces, one for each that differs, in order.
func (s State) Lives(namespaces []string) []Life {
	var out []Life
	namespaces = slices.Clone(namespaces)
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		life := s.Of(namespace)
		if !slices.ContainsFunc(out, func(l Life) bool { return l.Namespace == life.Namespace }) {
			out = append(out, life)
		}
	}
	slices.SortStableFunc(out, func(a, b Life) int { return cmp.Compare(a.Namespace, b.Namespace) })
	return out
}
