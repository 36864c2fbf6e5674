// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubelet says of each new pod that it runs and is ready, at once. Pods have
// no node, so that the API server removes a deleted one by itself.
type kubelet struct {
	client client.Client
	pods   chan types.NamespacedName
	next   atomic.Int64
	failed atomic.Pointer[error]
}

// kubeletWorkers are how many pods are started at once.
const kubeletWorkers = 8

// startKubelet lets one run until ctx ends; done waits for that.
func startKubelet(ctx context.Context, c client.Client, informers cache.Cache) (k *kubelet, done func(), err error) {
	k = &kubelet{client: c, pods: make(chan types.NamespacedName, maxPods)}
	informer, err := informers.GetInformer(ctx, &corev1.Pod{})
	if err != nil {
		return nil, nil, err
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Status.PodIP == "" {
			k.pods <- client.ObjectKeyFromObject(pod)
		}
	}})
	if err != nil {
		return nil, nil, err
	}
	var workers sync.WaitGroup
	for range kubeletWorkers {
		workers.Go(func() { k.work(ctx) })
	}
	return k, workers.Wait, nil
}

func (k *kubelet) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-k.pods:
			ip := podIP(int(k.next.Add(1)-1) % maxPods)
			if err := k.patch(ctx, key, podStatus(ip, true)); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				k.failed.Store(&err)
			}
		}
	}
}

// failure is the first reason for which a pod did not start.
func (k *kubelet) failure() error {
	if err := k.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (k *kubelet) patch(ctx context.Context, key types.NamespacedName, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	return k.client.Status().Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
}

// podStatus is that of a pod that runs and is ready, or is not.
func podStatus(ip string, ready bool) corev1.PodStatus {
	now := metav1.Now()
	is := corev1.ConditionFalse
	if ready {
		is = corev1.ConditionTrue
	}
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, StartTime: &now,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "server", Image: image, Ready: ready, Started: &ready,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	for _, t := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: t, Status: is, LastTransitionTime: now})
	}
	return status
}
