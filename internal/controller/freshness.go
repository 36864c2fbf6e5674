// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownWrites remembers the status that this controller wrote last to each
// object, until the cache has it. A pass that reads an older one would find
// that nothing differs where something does, and write nothing: the optimistic
// lock guards writes, not the lack of them.
type ownWrites struct {
	mu       sync.Mutex
	versions map[types.NamespacedName]ownWrite
}

type ownWrite struct {
	uid     types.UID
	version uint64
}

func newOwnWrites() *ownWrites {
	return &ownWrites{versions: map[types.NamespacedName]ownWrite{}}
}

// note takes down obj as the API server returned it from a write.
func (w *ownWrites) note(obj client.Object) {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[client.ObjectKeyFromObject(obj)] = ownWrite{obj.GetUID(), version}
}

// behind reports whether obj, as the cache has it, is older than the last
// write. Versions of one object can be compared (Kubernetes 1.35 on).
func (w *ownWrites) behind(obj client.Object) bool {
	key := client.ObjectKeyFromObject(obj)
	w.mu.Lock()
	defer w.mu.Unlock()
	last, ok := w.versions[key]
	if !ok {
		return false
	}
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err == nil && last.uid == obj.GetUID() && version < last.version {
		return true
	}
	delete(w.versions, key)
	return false
}

// forget drops what is remembered of an object that is gone.
func (w *ownWrites) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.versions, key)
}
