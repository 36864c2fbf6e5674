// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rivals keeps operators that were installed twice by mistake from
// working on the same namespaces: two would write the same children and
// statuses in turns, each in its own way.
//
// An operator leads by a Lease in its own namespace, which two installations do
// not share. So the Lease says, by labels, which namespaces its operator works
// on, and an operator looks at the Leases of that name in all namespaces before
// it leads and while it does.
package rivals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LeaseName of all operators.
const LeaseName = "espalier-manager"

// ReasonAnotherOperator of the event of a pod that stands back.
const ReasonAnotherOperator = "AnotherOperator"

// Labels of a Lease: LabelScope is ScopeAll or ScopeNamespaces, and then each
// namespace has a label of its own, labelNamespace + its name.
const (
	LabelScope      = "mcp.espalier.dev/scope"
	ScopeAll        = "all"
	ScopeNamespaces = "namespaces"
	labelNamespace  = "namespace.mcp.espalier.dev/"
)

const (
	// Grace is for how long an operator that has not renewed its Lease is
	// still taken for one that will be back: longer than its pod takes to be
	// replaced.
	Grace = 2 * time.Minute
	// lookEvery is how often Leases are read at most.
	lookEvery = 10 * time.Second
)

// Labels for the Lease of an operator that works on namespaces; none is all.
func Labels(namespaces []string) map[string]string {
	if len(namespaces) == 0 {
		return map[string]string{LabelScope: ScopeAll}
	}
	out := map[string]string{LabelScope: ScopeNamespaces}
	for _, namespace := range namespaces {
		out[labelNamespace+namespace] = ""
	}
	return out
}

// Covers reports whether an operator whose Lease bears those labels works on
// namespace.
func Covers(labels map[string]string, namespace string) bool {
	return overlap(labels, Labels([]string{namespace}))
}

// Lock is the lock of leader election, which is not to be had while a rival
// leads.
type Lock struct {
	resourcelock.Interface

	leases    coordinationclient.LeasesGetter
	namespace string
	scope     map[string]string
	clock     clock.PassiveClock
	// pod of this operator, in namespace; empty where it runs in none.
	pod    string
	events resourcelock.EventRecorder

	mu        sync.Mutex
	leads     time.Time // Since when; zero while it does not.
	until     time.Time // For how long without renewal.
	looked    time.Time
	seen      []coordinationv1.Lease
	rival     string
	forbidden bool
}

// NewLock makes a Lock of one by the Lease in namespace.
func NewLock(lock resourcelock.Interface, leases coordinationclient.LeasesGetter, namespace string, namespaces []string, c clock.PassiveClock) *Lock {
	return &Lock{Interface: lock, leases: leases, namespace: namespace, scope: Labels(namespaces), clock: c}
}

// Create takes the lock for the first time.
func (l *Lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := l.alone(ctx); err != nil {
		return err
	}
	if err := l.Interface.Create(ctx, record); err != nil {
		return err
	}
	l.note(record)
	return nil
}

// Update takes the lock, keeps or releases it.
func (l *Lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity != "" {
		if err := l.alone(ctx); err != nil {
			return err
		}
	}
	if err := l.Interface.Update(ctx, record); err != nil {
		return err
	}
	l.note(record)
	return nil
}

func (l *Lock) note(record resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads = time.Time{}
	if record.HolderIdentity == l.Identity() {
		l.leads = record.AcquireTime.Time
		l.until = record.RenewTime.Add(time.Duration(record.LeaseDurationSeconds) * time.Second)
	}
}

// Check is a check of readiness: it tells of a rival.
func (l *Lock) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rival == "" {
		return nil
	}
	return standsBack(l.rival)
}

func standsBack(rival string) error {
	return fmt.Errorf("another operator, in namespace %s, works on the same namespaces: this one stands back. Remove one of the two, or give them different --watch-namespace", rival)
}

// alone returns an error while a rival goes before this operator.
func (l *Lock) alone(ctx context.Context) error {
	leases, err := l.look(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	rival := l.goesBefore(leases)
	before := l.rival
	l.rival = rival
	if rival == "" {
		return nil
	}
	why := standsBack(rival)
	if rival != before {
		ctrl.LoggerFrom(ctx).Error(why, "The operator does not work")
		l.tell(why)
	}
	return why
}

// look reads the Leases, or gives those read a moment ago. An operator that may
// not list them works as if it were alone.
func (l *Lock) look(ctx context.Context) ([]coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if !l.looked.IsZero() && now.Sub(l.looked) < lookEvery {
		return l.seen, nil
	}
	list, err := l.leases.Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + LeaseName})
	switch {
	case apierrors.IsForbidden(err):
		if !l.forbidden {
			ctrl.LoggerFrom(ctx).Info("Cannot see whether another operator is installed: listing Leases is forbidden")
		}
		l.forbidden, l.looked, l.seen = true, now, nil
		return nil, nil
	case err != nil:
		return nil, errors.Join(errors.New("cannot see whether another operator is installed"), err)
	}
	l.forbidden, l.looked, l.seen = false, now, list.Items
	return l.seen, nil
}

// goesBefore names the namespace of a rival that this operator must give way
// to. One that does not lead gives way to any that led a moment ago, so that
// the first one stays while its pod is replaced. Of two that lead, which happens
// when both began at once, the one that did so first stays.
func (l *Lock) goesBefore(leases []coordinationv1.Lease) string {
	now := l.clock.Now()
	for i := range leases {
		lease := &leases[i]
		if lease.Namespace == l.namespace || lease.Spec.RenewTime == nil || !overlap(l.scope, lease.Labels) {
			continue
		}
		since := now.Sub(lease.Spec.RenewTime.Time)
		if l.leads.IsZero() || now.After(l.until) {
			if since < Grace {
				return lease.Namespace
			}
			continue
		}
		if held(lease) && since < duration(lease) && before(lease, l.leads, l.namespace) {
			return lease.Namespace
		}
	}
	return ""
}

func held(lease *coordinationv1.Lease) bool {
	return lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && lease.Spec.AcquireTime != nil
}

func duration(lease *coordinationv1.Lease) time.Duration {
	if lease.Spec.LeaseDurationSeconds == nil {
		return Grace
	}
	return time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
}

// before reports whether lease was acquired before another was at that time.
// What is stored is cut to microseconds.
func before(lease *coordinationv1.Lease, at time.Time, namespace string) bool {
	a, b := lease.Spec.AcquireTime.Truncate(time.Microsecond), at.Truncate(time.Microsecond)
	if a.Equal(b) {
		return lease.Namespace < namespace
	}
	return a.Before(b)
}

// overlap reports whether two scopes have a namespace in common. A Lease
// without a scope is of an operator that says none: it works on all.
func overlap(a, b map[string]string) bool {
	if a[LabelScope] != ScopeNamespaces || b[LabelScope] != ScopeNamespaces {
		return true
	}
	return slices.ContainsFunc(namespacesOf(a), func(name string) bool { return slices.Contains(namespacesOf(b), name) })
}

func namespacesOf(labels map[string]string) []string {
	var out []string
	for key := range labels {
		if name, ok := strings.CutPrefix(key, labelNamespace); ok {
			out = append(out, name)
		}
	}
	return out
}
