// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/e2e/harness"
)

// rolloutWatch counts, from every change of a Service, how many servers are
// being given an image at once.
type rolloutWatch struct {
	end func()

	mu   sync.Mutex
	now  map[string]bool
	most int
}

func watchRollouts(ctx context.Context, ns *harness.Namespace) *rolloutWatch {
	w := &rolloutWatch{now: map[string]bool{}}
	w.end = ns.Watch(ctx, &corev1.ServiceList{}, func(event watch.Event) {
		service, ok := event.Object.(*corev1.Service)
		if !ok {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.now, service.Name)
		if service.Labels[v1alpha1.LabelRollout] != "" && event.Type != watch.Deleted {
			w.now[service.Name] = true
		}
		w.most = max(w.most, len(w.now))
	})
	return w
}

// stop ends the watch and gives the most that were seen at once.
func (w *rolloutWatch) stop() int {
	w.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}
