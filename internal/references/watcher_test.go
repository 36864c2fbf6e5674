// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// store is an API server that counts what is read of it.
type store struct {
	mu      sync.Mutex
	objects map[string]map[string]string // KIND/NAME to data
	version map[string]string
	fail    error
	// metadata and data count reads.
	metadata, data int
}

func newStore() *store {
	return &store{objects: map[string]map[string]string{}, version: map[string]string{}}
}

// set stores an object as of a version; nil removes it.
func (s *store) set(kind, name, version string, data map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data == nil {
		delete(s.objects, kind+"/"+name)
		return
	}
	s.objects[kind+"/"+name], s.version[kind+"/"+name] = data, version
}

func (s *store) breakdown(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *store) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("nothing may be listed")
}

func (s *store) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := ""
	switch obj := obj.(type) {
	case *metav1.PartialObjectMetadata:
		kind = obj.Kind
		s.metadata++
	case *corev1.Secret:
		kind = "Secret"
		s.data++
	case *corev1.ConfigMap:
		kind = "ConfigMap"
		s.data++
	}
	if s.fail != nil {
		return s.fail
	}
	data, ok := s.objects[kind+"/"+key.Name]
	if !ok {
		return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	obj.SetResourceVersion(s.version[kind+"/"+key.Name])
	switch obj := obj.(type) {
	case *corev1.Secret:
		obj.Data = map[string][]byte{}
		for k, v := range data {
			obj.Data[k] = []byte(v)
		}
	case *corev1.ConfigMap:
		obj.Data = data
	}
	return nil
}

// counts of reads since the last call.
func (s *store) counts() (metadata, data int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metadata, data = s.metadata, s.data
	s.metadata, s.data = 0, 0
	return metadata, data
}

type fixture struct {
	*testing.T
	*Watcher
	store *store
	clock *testclock.FakeClock
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t, store: newStore(), clock: testclock.NewFakeClock(time.Unix(0, 0))}
	f.Watcher = New(f.store, func(v []byte) string { return "digest of " + string(v) }, f.clock)
	return f
}

func owner(name string) Owner { return Owner{Namespace: "ns", Name: name} }

func secretKey(name, key string) catalog.Ref {
	return catalog.Ref{Kind: catalog.RefSecret, Name: name, Key: key}
}

func secretID(name string) ID { return ID{Kind: catalog.RefSecret, Namespace: "ns", Name: name} }

func (f *fixture) resolve(name string, refs ...catalog.Ref) map[ID]State {
	f.Helper()
	states, err := f.Resolve(f.Context(), owner(name), refs)
	if err != nil {
		f.Fatal(err)
	}
	return states
}

// after lets time pass, polls once, and gives whom that woke.
func (f *fixture) after(d time.Duration) []string {
	f.Helper()
	f.clock.Step(d)
	f.poll(f.Context())
	var woken []string
	for {
		select {
		case e := <-f.Wake():
			woken = append(woken, e.Object.Name)
		default:
			return woken
		}
	}
}

// TestResolve: what is known at once, and of which kinds.
func TestResolve(t *testing.T) {
	f := newFixture(t)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	f.store.set("ConfigMap", "s", "2", map[string]string{"c": "w"})
	got := f.resolve("a", secretKey("s", "k"), secretKey("none", "k"), catalog.Ref{Kind: catalog.RefConfigMap, Name: "s", Key: "c"})
	want := map[ID]State{
		secretID("s"):    {Found: true, Version: "1", Digests: map[string]string{"k": "digest of v"}},
		secretID("none"): {},
		{Kind: catalog.RefConfigMap, Namespace: "ns", Name: "s"}: {Found: true, Version: "2", Digests: map[string]string{"c": "digest of w"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.store.counts()
	f.resolve("a", secretKey("s", "k"))
	f.resolve("b", secretKey("s", "other"))
	if metadata, data := f.store.counts(); metadata+data != 0 {
		t.Errorf("what is known was read again: %d, %d", metadata, data)
	}
	if f.resolve("b", secretKey("s", "other"))[secretID("s")].Has("other") {
		t.Error("it has a key that is not there")
	}
}

// TestPolling: metadata alone at rest, data when it moved, and only a change
// of what is kept wakes anybody.
func TestPolling(t *testing.T) {
	f := newFixture(t)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	f.resolve("a", secretKey("s", "k"))
	f.resolve("b", secretKey("s", "k"))
	f.store.counts()
	steps := []struct {
		name           string
		change         func()
		woken          int
		metadata, data int
	}{
		{"at rest", func() {}, 0, 1, 0},
		{"a label", func() { f.store.set("Secret", "s", "2", map[string]string{"k": "v"}) }, 0, 1, 1},
		{"at rest again", func() {}, 0, 1, 0},
		{"the value", func() { f.store.set("Secret", "s", "3", map[string]string{"k": "w"}) }, 2, 1, 1},
		{"deleted", func() { f.store.set("Secret", "s", "", nil) }, 2, 1, 0},
		{"still gone", func() {}, 0, 1, 0},
		{"back", func() { f.store.set("Secret", "s", "4", map[string]string{"k": "w"}) }, 2, 1, 1},
		{"the key goes", func() { f.store.set("Secret", "s", "5", map[string]string{"x": "w"}) }, 2, 1, 1},
		{"forbidden", func() {
			f.store.breakdown(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", errors.New("no")))
		}, 2, 1, 0},
		{"allowed", func() { f.store.breakdown(nil) }, 2, 1, 1},
		{"the API server is down", func() { f.store.breakdown(apierrors.NewServiceUnavailable("down")) }, 0, 1, 0},
		{"and up", func() { f.store.breakdown(nil) }, 0, 1, 0},
	}
	for _, step := range steps {
		step.change()
		woken := f.after(PresentInterval)
		metadata, data := f.store.counts()
		if len(woken) != step.woken || metadata != step.metadata || data != step.data {
			t.Errorf("%s: woken %v, %d metadata, %d data; want %d, %d, %d", step.name, woken, metadata, data, step.woken, step.metadata, step.data)
		}
	}
}

// TestIntervals: what is missing, or lacks a key that is named, is looked at
// more often, whoever came first.
func TestIntervals(t *testing.T) {
	f := newFixture(t)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	f.resolve("a", secretKey("s", "k"), secretKey("none", "k"))
	f.store.counts()
	f.after(MissingInterval)
	if metadata, _ := f.store.counts(); metadata != 1 {
		t.Errorf("%d were looked at, want the missing one alone", metadata)
	}
	f.resolve("b", secretKey("s", "late"))
	f.store.set("Secret", "s", "2", map[string]string{"k": "v", "late": "x"})
	if woken := f.after(MissingInterval); len(woken) != 2 {
		t.Errorf("a key that came was seen by %v", woken)
	}
}

// TestForget: nobody polls for whom nobody asks.
func TestForget(t *testing.T) {
	f := newFixture(t)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	f.resolve("a", secretKey("s", "k"), secretKey("none", "k"))
	f.resolve("b", secretKey("s", "k"))
	f.Forget(owner("a"))
	f.store.set("Secret", "s", "2", map[string]string{"k": "w"})
	if diff := cmp.Diff([]string{"b"}, f.after(PresentInterval)); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	f.resolve("b") // names none any more
	f.store.counts()
	f.after(time.Hour)
	if metadata, data := f.store.counts(); metadata+data != 0 {
		t.Errorf("%d and %d were read for nobody", metadata, data)
	}
	if len(f.entries) != 0 || len(f.owners) != 0 {
		t.Errorf("kept %v, %v", f.entries, f.owners)
	}
}

// TestResolveFails: an API server that is down is no missing Secret.
func TestResolveFails(t *testing.T) {
	f := newFixture(t)
	f.store.breakdown(apierrors.NewServiceUnavailable("down"))
	if states, err := f.Resolve(t.Context(), owner("a"), []catalog.Ref{secretKey("s", "k")}); err == nil {
		t.Errorf("resolved as %v", states)
	}
	f.store.breakdown(nil)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	if !f.resolve("a", secretKey("s", "k"))[secretID("s")].Has("k") {
		t.Error("it is not found afterwards")
	}
}

// TestConcurrently: owners come and go while the watcher polls.
func TestConcurrently(t *testing.T) {
	f := newFixture(t)
	f.store.set("Secret", "s", "1", map[string]string{"k": "v"})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if err := f.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	all.Go(func() {
		for ctx.Err() == nil {
			select {
			case <-f.Wake():
			case <-ctx.Done():
			}
		}
	})
	var owners sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		owners.Go(func() {
			for i := range 100 {
				f.store.set("Secret", "s", name+time.Duration(i).String(), map[string]string{"k": name})
				if _, err := f.Resolve(ctx, owner(name), []catalog.Ref{secretKey("s", "k"), secretKey(name, "k")}); err != nil {
					t.Error(err)
				}
				f.clock.Step(PresentInterval)
				if i%10 == 0 {
					f.Forget(owner(name))
				}
			}
		})
	}
	owners.Wait()
	cancel()
	all.Wait()
}
