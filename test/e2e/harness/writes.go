// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// Kinds of objects that tests count the writes of.
func (n *Namespace) kinds() map[string]client.ObjectList {
	return map[string]client.ObjectList{
		"MCPServer":           &v1alpha1.MCPServerList{},
		"MCPTool":             &v1alpha1.MCPToolList{},
		"MCPResource":         &v1alpha1.MCPResourceList{},
		"MCPPrompt":           &v1alpha1.MCPPromptList{},
		"Deployment":          &appsv1.DeploymentList{},
		"ReplicaSet":          &appsv1.ReplicaSetList{},
		"Service":             &corev1.ServiceList{},
		"ConfigMap":           &corev1.ConfigMapList{},
		"Secret":              &corev1.SecretList{},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudgetList{},
		"Pod":                 &corev1.PodList{},
	}
}

// Writes are the writes that a watch has seen: one line each.
type Writes struct {
	mu    sync.Mutex
	lines []string
}

// CountWrites watches objects of the kinds in the namespace from now on,
// all kinds if none is named. A watch ends with the spec, or when stop is called.
func (n *Namespace) CountWrites(ctx context.Context, kinds ...string) (writes *Writes, stop func()) {
	GinkgoHelper()
	all := n.kinds()
	if len(kinds) == 0 {
		for kind := range all {
			kinds = append(kinds, kind)
		}
	}
	writes = &Writes{}
	var stops []func()
	for _, kind := range kinds {
		list, ok := all[kind]
		Expect(ok).To(BeTrue(), "no kind %s", kind)
		stops = append(stops, n.Watch(ctx, list, func(event watch.Event) { writes.add(kind, event) }))
	}
	return writes, func() {
		for _, s := range stops {
			s()
		}
	}
}

func (w *Writes) add(kind string, event watch.Event) {
	obj, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	by := ""
	if fields := obj.GetManagedFields(); len(fields) > 0 {
		newest := fields[0]
		for _, f := range fields {
			if f.Time != nil && newest.Time != nil && f.Time.After(newest.Time.Time) {
				newest = f
			}
		}
		by = fmt.Sprintf(", last by %s %s", newest.Manager, newest.Subresource)
	}
	w.lines = append(w.lines, fmt.Sprintf("%s %s %s at %s%s", event.Type, kind, obj.GetName(), obj.GetResourceVersion(), by))
}

// Lines are the writes seen so far.
func (w *Writes) Lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines...)
}

// Watch calls seen for each change of objects of list's kind in the namespace
// from now on, until stop is called or the spec ends.
func (n *Namespace) Watch(ctx context.Context, list client.ObjectList, seen func(watch.Event)) (stop func()) {
	GinkgoHelper()
	Expect(n.Client.List(ctx, list, client.InNamespace(n.Name))).To(Succeed())
	options := &client.ListOptions{Namespace: n.Name}
	options.Raw = options.AsListOptions()
	options.Raw.ResourceVersion = list.GetResourceVersion()
	// The watch outlives the node that opened it, up to the end of the spec.
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w, err := n.Client.Watch(watching, list, options)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			seen(event)
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			w.Stop()
			cancel()
			<-done
		})
	}
	DeferCleanup(stop)
	return stop
}
