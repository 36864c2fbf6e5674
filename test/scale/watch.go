// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// watcher sees which servers are Ready, and which Deployments there are.
type watcher struct {
	mu          sync.Mutex
	ready       map[string]bool
	deployments map[string]types.UID
}

func startWatcher(ctx context.Context, informers cache.Cache) (*watcher, error) {
	w := &watcher{ready: map[string]bool{}, deployments: map[string]types.UID{}}
	for _, of := range []client.Object{&mcpv1.MCPServer{}, &appsv1.Deployment{}} {
		informer, err := informers.GetInformer(ctx, of)
		if err != nil {
			return nil, err
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: w.seen, UpdateFunc: func(_, obj any) { w.seen(obj) }, DeleteFunc: w.gone,
		})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *watcher) seen(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch o := obj.(type) {
	case *mcpv1.MCPServer:
		w.ready[o.Name] = meta.IsStatusConditionTrue(o.Status.Conditions, mcpv1.ConditionReady)
	case *appsv1.Deployment:
		w.deployments[o.Name] = o.UID
	}
}

func (w *watcher) gone(obj any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o, ok := obj.(*appsv1.Deployment); ok && w.deployments[o.Name] == o.UID {
		delete(w.deployments, o.Name)
	}
}

// readyCount is how many servers are Ready.
func (w *watcher) readyCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, ready := range w.ready {
		if ready {
			n++
		}
	}
	return n
}

func (w *watcher) isReady(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready[name]
}

func (w *watcher) deployment(name string) types.UID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deployments[name]
}

// until waits for ok and gives the time that it took. What it waits for is
// looked at every few milliseconds.
func until(ctx context.Context, within time.Duration, what string, ok func() (bool, error)) (time.Duration, error) {
	began := time.Now()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		yes, err := ok()
		took := time.Since(began)
		switch {
		case err != nil:
			return took, fmt.Errorf("%s: %w", what, err)
		case yes:
			return took, nil
		case took > within:
			return took, fmt.Errorf("%s: not within %s", what, within)
		}
		select {
		case <-ctx.Done():
			return took, ctx.Err()
		case <-ticker.C:
		}
	}
}
