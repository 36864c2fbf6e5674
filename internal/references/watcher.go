// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package references knows the Secrets and ConfigMaps that users name: whether
// they exist, which keys they have, and when they change, names that do not
// exist yet included.
//
// It polls each name as metadata, since watching Secrets would need the right
// to read all of them. Data is read only when the resourceVersion moved, and
// of it a keyed digest per key is kept, never a value.
package references

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/espalier-dev/espalier/internal/catalog"
)

// Intervals of polling.
const (
	// PresentInterval of an object that exists.
	PresentInterval = 30 * time.Second
	// MissingInterval of one that does not, or lacks a key that is named.
	MissingInterval = 10 * time.Second
)

// ID of a Secret or ConfigMap.
type ID struct {
	Kind      catalog.RefKind
	Namespace string
	Name      string
}

// State of a Secret or ConfigMap.
type State struct {
	Found bool
	// Forbidden: the operator may not get it.
	Forbidden bool
	// Version is its resourceVersion.
	Version string
	// Digests of its values by key, keyed.
	Digests map[string]string
}

// Has reports whether the object exists and has key.
func (s State) Has(key string) bool {
	_, ok := s.Digests[key]
	return s.Found && ok
}

// Owner is an MCPServer.
type Owner = types.NamespacedName

// Watcher polls what owners name. It is a leader-only Runnable; Resolve works
// before Start too.
type Watcher struct {
	reader client.Reader
	digest func([]byte) string
	clock  clock.Clock
	wake   chan event.TypedGenericEvent[Owner]

	mu      sync.Mutex
	entries map[ID]*entry
	owners  map[Owner][]ID
}

type entry struct {
	state State
	// keys that some owner names, to tell whether one is missing.
	owners map[Owner][]string
	next   time.Time
}

// New makes a Watcher that reads through reader, which must not be a cache.
func New(reader client.Reader, digest func([]byte) string, c clock.Clock) *Watcher {
	return &Watcher{
		reader: reader, digest: digest, clock: c,
		wake:    make(chan event.TypedGenericEvent[Owner], 1024),
		entries: map[ID]*entry{}, owners: map[Owner][]ID{},
	}
}

// Wake tells of owners for whom something changed.
func (w *Watcher) Wake() <-chan event.TypedGenericEvent[Owner] { return w.wake }

// NeedLeaderElection makes a manager start it on the leader only.
func (w *Watcher) NeedLeaderElection() bool { return true }

// Resolve gives the states of what refs name and keeps watching exactly
// these for owner. What is not known yet is read at once.
func (w *Watcher) Resolve(ctx context.Context, owner Owner, refs []catalog.Ref) (map[ID]State, error) {
	wanted := map[ID][]string{}
	for _, r := range refs {
		id := ID{r.Kind, owner.Namespace, r.Name}
		wanted[id] = append(wanted[id], r.Key)
	}
	states := map[ID]State{}
	for _, id := range w.adopt(owner, wanted) {
		state, err := w.read(ctx, id)
		if err != nil {
			return nil, err
		}
		w.store(id, state)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range wanted {
		if e := w.entries[id]; e != nil {
			states[id] = e.state
		}
	}
	return states, nil
}

// Forget drops owner.
func (w *Watcher) Forget(owner Owner) { w.adopt(owner, nil) }

// adopt makes wanted what owner names and returns what was never read.
func (w *Watcher) adopt(owner Owner, wanted map[ID][]string) []ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.owners[owner] {
		if _, still := wanted[id]; !still {
			w.release(id, owner)
		}
	}
	delete(w.owners, owner)
	if len(wanted) == 0 {
		return nil
	}
	var unread []ID
	for id, keys := range wanted {
		e := w.entries[id]
		if e == nil {
			e = &entry{owners: map[Owner][]string{}}
			w.entries[id] = e
		}
		if e.next.IsZero() {
			unread = append(unread, id)
		}
		e.owners[owner] = keys
		if due := w.clock.Now().Add(e.interval(e.state)); due.Before(e.next) {
			// This owner names a key that is missing.
			e.next = due
		}
		w.owners[owner] = append(w.owners[owner], id)
	}
	return unread
}

func (w *Watcher) release(id ID, owner Owner) {
	if e := w.entries[id]; e != nil {
		delete(e.owners, owner)
		if len(e.owners) == 0 {
			delete(w.entries, id)
		}
	}
}

// store keeps state and says whom to wake.
func (w *Watcher) store(id ID, state State) []Owner {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.entries[id]
	if e == nil {
		return nil
	}
	first := e.next.IsZero()
	e.next = w.clock.Now().Add(e.interval(state))
	changed := !same(e.state, state)
	e.state = state
	if first || !changed {
		return nil
	}
	return slices.Collect(maps.Keys(e.owners))
}

func same(a, b State) bool {
	return a.Found == b.Found && a.Forbidden == b.Forbidden && maps.Equal(a.Digests, b.Digests)
}

// interval until the next look, with 5% of jitter.
func (e *entry) interval(state State) time.Duration {
	interval := PresentInterval
	for _, keys := range e.owners {
		if slices.ContainsFunc(keys, func(k string) bool { return k != "" && !state.Has(k) }) {
			interval = MissingInterval
		}
	}
	if !state.Found {
		interval = MissingInterval
	}
	return interval - time.Duration(rand.Int64N(int64(interval/20))) //nolint:gosec // Jitter is no secret.
}

// Start polls until ctx ends.
func (w *Watcher) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.clock.After(time.Second):
			w.poll(ctx)
		}
	}
}

func (w *Watcher) poll(ctx context.Context) {
	for _, id := range w.due() {
		state, err := w.look(ctx, id)
		if err != nil {
			// The API server does not answer; nothing is known to have changed.
			w.postpone(id)
			continue
		}
		for _, owner := range w.store(id, state) {
			select {
			case w.wake <- event.TypedGenericEvent[Owner]{Object: owner}:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (w *Watcher) due() []ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	var out []ID
	for id, e := range w.entries {
		if !e.next.IsZero() && !now.Before(e.next) {
			out = append(out, id)
		}
	}
	return out
}

func (w *Watcher) postpone(id ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.entries[id]; e != nil {
		e.next = w.clock.Now().Add(MissingInterval)
	}
}

// look reads metadata, and data only when that moved.
func (w *Watcher) look(ctx context.Context, id ID) (State, error) {
	meta := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: string(id.Kind)}}
	err := w.reader.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Name}, meta)
	if state, done, err := judge(err); done {
		return state, err
	}
	if known := w.known(id); known.Found && known.Version == meta.ResourceVersion {
		return known, nil
	}
	return w.read(ctx, id)
}

// known is what was read of id last.
func (w *Watcher) known(id ID) State {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.entries[id]; e != nil {
		return e.state
	}
	return State{}
}

func (w *Watcher) read(ctx context.Context, id ID) (State, error) {
	name := types.NamespacedName{Namespace: id.Namespace, Name: id.Name}
	state := State{Found: true, Digests: map[string]string{}}
	switch id.Kind {
	case catalog.RefSecret:
		var secret corev1.Secret
		if state, done, err := judge(w.reader.Get(ctx, name, &secret)); done {
			return state, err
		}
		state.Version = secret.ResourceVersion
		for key, value := range secret.Data {
			state.Digests[key] = w.digest(value)
		}
	default:
		var cm corev1.ConfigMap
		if state, done, err := judge(w.reader.Get(ctx, name, &cm)); done {
			return state, err
		}
		state.Version = cm.ResourceVersion
		for key, value := range cm.Data {
			state.Digests[key] = w.digest([]byte(value))
		}
		for key, value := range cm.BinaryData {
			state.Digests[key] = w.digest(value)
		}
	}
	return state, nil
}

// judge says whether err settles the state already.
func judge(err error) (State, bool, error) {
	switch {
	case err == nil:
		return State{}, false, nil
	case apierrors.IsNotFound(err):
		return State{}, true, nil
	case apierrors.IsForbidden(err):
		return State{Forbidden: true}, true, nil
	default:
		return State{}, true, err
	}
}
