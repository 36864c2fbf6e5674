// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package rivals

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// party is an operator of a namespace.
type party struct {
	*Lock
	t     *testing.T
	clock *testclock.FakePassiveClock
	since time.Time
}

func newParty(t *testing.T, set *fake.Clientset, clock *testclock.FakePassiveClock, namespace string, namespaces ...string) *party {
	t.Helper()
	inner := &resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: LeaseName}, Client: set.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: namespace + "-1"}, Labels: Labels(namespaces),
	}
	return &party{Lock: NewLock(inner, set.CoordinationV1(), namespace, namespaces, clock), t: t, clock: clock}
}

// try takes the lock or keeps it, as leader election does.
func (p *party) try() error {
	p.t.Helper()
	ctx := context.Background()
	if p.since.IsZero() {
		p.since = p.clock.Now()
	}
	record := resourcelock.LeaderElectionRecord{
		HolderIdentity: p.Identity(), LeaseDurationSeconds: 15, RenewTime: metav1.NewTime(p.clock.Now()), AcquireTime: metav1.NewTime(p.since),
	}
	_, _, err := p.Get(ctx)
	if apierrors.IsNotFound(err) {
		err = p.Create(ctx, record)
	} else {
		err = p.Update(ctx, record)
	}
	if err != nil {
		p.since = time.Time{}
	}
	return err
}

func (p *party) leads(what string) {
	p.t.Helper()
	if err := p.try(); err != nil {
		p.t.Errorf("%s: %v", what, err)
	}
	if err := p.Check(); err != nil {
		p.t.Errorf("%s: it is not ready: %v", what, err)
	}
}

func (p *party) standsBackFor(what, rival string) {
	p.t.Helper()
	if err := p.try(); err == nil || !strings.Contains(err.Error(), "in namespace "+rival+",") {
		p.t.Errorf("%s: it gives %v, not that %s goes before", what, err, rival)
	}
	if p.Check() == nil {
		p.t.Errorf("%s: it is ready", what)
	}
}

func (p *party) pass(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

// TestTheFirstStays while it renews its Lease, and a while after; when it is
// gone the second leads, and keeps the lead.
func TestTheFirstStays(t *testing.T) {
	set, clock := fake.NewClientset(), testclock.NewFakePassiveClock(epoch)
	first, second := newParty(t, set, clock, "b-first"), newParty(t, set, clock, "a-second")
	first.leads("alone")
	for range 20 {
		first.pass(lookEvery)
		first.leads("renewing")
		second.standsBackFor("beside the first", "b-first")
	}
	second.pass(Grace - time.Second)
	second.standsBackFor("a while after the first was lost", "b-first")
	replaced := newParty(t, set, clock, "b-first")
	replaced.leads("the first's next pod")
	second.pass(lookEvery)
	second.standsBackFor("after that", "b-first")
	second.pass(Grace + time.Second)
	second.leads("the first is gone")
	second.pass(lookEvery)
	replaced.standsBackFor("it comes back", "a-second")
	second.leads("it came back")
}

// TestStandingBackIsTold by one event for each rival that is met.
func TestStandingBackIsTold(t *testing.T) {
	set, clock := fake.NewClientset(), testclock.NewFakePassiveClock(epoch)
	first, second := newParty(t, set, clock, "first"), newParty(t, set, clock, "second")
	events := record.NewFakeRecorder(10)
	second.pod = "second-pod"
	second.Record(events)
	first.leads("alone")
	for range 3 {
		first.pass(lookEvery)
		first.leads("renewing")
		second.standsBackFor("beside the first", "first")
	}
	if got := <-events.Events; !strings.HasPrefix(got, "Warning AnotherOperator another operator, in namespace first, ") {
		t.Errorf("the event is %q", got)
	}
	second.pass(Grace + time.Second)
	second.leads("the first is gone")
	if len(events.Events) != 0 {
		t.Errorf("another event: %q", <-events.Events)
	}
	third := newParty(t, set, clock, "third")
	third.Record(events)
	third.standsBackFor("outside of a pod", "second")
	if len(events.Events) != 0 {
		t.Errorf("an event of no pod: %q", <-events.Events)
	}
}

// TestBothAtOnce: the one that led first stays, the other gives up.
func TestBothAtOnce(t *testing.T) {
	set, clock := fake.NewClientset(), testclock.NewFakePassiveClock(epoch)
	one, two := newParty(t, set, clock, "one"), newParty(t, set, clock, "two")
	// Both look while there is no Lease.
	for _, p := range []*party{one, two} {
		if _, err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*party{one, two} {
		p.leads("none was there")
		p.pass(time.Millisecond)
	}
	one.pass(lookEvery)
	one.leads("the earlier")
	two.standsBackFor("the later", "one")
}

// TestScopes: operators of other namespaces are no rivals.
func TestScopes(t *testing.T) {
	set, clock := fake.NewClientset(), testclock.NewFakePassiveClock(epoch)
	ab, c := newParty(t, set, clock, "op-1", "a", "b"), newParty(t, set, clock, "op-2", "c")
	ab.leads("a and b")
	c.leads("c")
	newParty(t, set, clock, "op-3", "b", "x").standsBackFor("b too", "op-1")
	newParty(t, set, clock, "op-4").standsBackFor("all", "op-1")
	for _, scopes := range [][2][]string{{{}, {"a"}}, {{"a"}, {}}, {{}, {}}, {{"a"}, {"b", "a"}}} {
		if !overlap(Labels(scopes[0]), Labels(scopes[1])) {
			t.Errorf("%v have nothing in common", scopes)
		}
	}
	if !overlap(Labels([]string{"a"}), nil) {
		t.Error("one that says no scope works on all")
	}
	want := map[string]string{"mcp.espalier.dev/scope": "namespaces", "namespace.mcp.espalier.dev/a": ""}
	if got := Labels([]string{"a"}); !maps.Equal(got, want) {
		t.Errorf("labels %v", got)
	}
}

// TestReleased: one that gives up its Lease does not ask whether it may.
func TestReleased(t *testing.T) {
	set, clock := fake.NewClientset(), testclock.NewFakePassiveClock(epoch)
	one := newParty(t, set, clock, "one")
	one.leads("alone")
	rival := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "zero", Name: LeaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("zero-1"), LeaseDurationSeconds: ptr.To[int32](15),
		AcquireTime: &metav1.MicroTime{Time: epoch.Add(-time.Hour)}, RenewTime: &metav1.MicroTime{Time: epoch.Add(lookEvery)},
	}}
	if _, err := set.CoordinationV1().Leases("zero").Create(t.Context(), rival, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	one.pass(lookEvery)
	one.standsBackFor("an earlier one", "zero")
	if err := one.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Errorf("it cannot release its Lease: %v", err)
	}
}

// TestBlind: one that may not list Leases works; one whose list fails otherwise
// does not take the lock.
func TestBlind(t *testing.T) {
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, test := range map[string]struct {
		err   error
		works bool
	}{
		"forbidden": {apierrors.NewForbidden(leases, "", errors.New("no")), true},
		"down":      {apierrors.NewServiceUnavailable("down"), false},
	} {
		t.Run(name, func(t *testing.T) {
			set := fake.NewClientset()
			set.PrependReactor("list", "leases", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
			p := newParty(t, set, testclock.NewFakePassiveClock(epoch), "one")
			if err := p.try(); (err == nil) != test.works {
				t.Errorf("it gives %v", err)
			}
		})
	}
}
