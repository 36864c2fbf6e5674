// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/rivals"
)

// candidate is the leader election of an operator that is installed in a
// namespace of its own.
type candidate struct {
	lock      *rivals.Lock
	namespace string
	leading   atomic.Bool
	stop      func()
}

// newCandidate starts the election of an operator that works on namespaces.
func newCandidate(t *testing.T, namespaces ...string) *candidate {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "operator-"}}
	must(t, api.Client.Create(t.Context(), namespace))
	lock, err := rivals.New(api.Config, namespace.Name, namespaces)
	must(t, err)
	c := &candidate{lock: lock, namespace: namespace.Name}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { c.leading.Store(true) },
			OnStoppedLeading: func() { c.leading.Store(false) },
		},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { elector.Run(ctx) })
	c.stop = func() { cancel(); running.Wait() }
	t.Cleanup(c.stop)
	return c
}

// TestSecondInstallation: an operator that is installed by mistake beside
// another does not work and says so, until the other is gone, Lease and all.
// One for other namespaces works.
func TestSecondInstallation(t *testing.T) {
	w := &world{T: t, ctx: t.Context()}
	leads := func(c *candidate) func() string {
		return func() string { return map[bool]string{true: "", false: "it does not lead"}[c.leading.Load()] }
	}
	first := newCandidate(t, "team-a", "team-b")
	w.eventually(soon, "the first", leads(first))
	must(t, first.lock.Check())

	second := newCandidate(t, "team-b")
	w.eventually(soon, "what the second says", func() string {
		if err := second.lock.Check(); err == nil || second.leading.Load() {
			return fmt.Sprintf("leading %t, %v", second.leading.Load(), err)
		}
		return ""
	})
	other := newCandidate(t, "team-c")
	w.eventually(soon, "one for another namespace", leads(other))
	if !first.leading.Load() || second.leading.Load() {
		t.Error("the second leads")
	}

	first.stop()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: first.namespace, Name: rivals.LeaseName}}
	must(t, api.Client.Get(w.ctx, client.ObjectKeyFromObject(lease), lease))
	if lease.Labels[rivals.LabelScope] != rivals.ScopeNamespaces || *lease.Spec.HolderIdentity != "" {
		t.Errorf("the first leaves a Lease %v, held by %q", lease.Labels, *lease.Spec.HolderIdentity)
	}
	must(t, api.Client.Delete(w.ctx, lease))
	w.eventually(2*soon, "the second, alone", leads(second))
	must(t, second.lock.Check())
}
