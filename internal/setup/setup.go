// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package setup holds the scheme and the cache and client options of the
// operator. cmd/manager and the API-server tests use the same, so that what
// is tested is what runs.
package setup

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Scheme knows the types of Kubernetes and of Espalier.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(mcpv1.AddToScheme(scheme))
	return scheme
}

// CacheOptions watch Espalier's kinds, and of all others only the objects
// that bear its labels. namespaces limits the operator; empty is all.
//
// Secrets are in no cache. ConfigMaps are only those that Espalier made.
func CacheOptions(namespaces []string) cache.Options {
	owned := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{mcpv1.LabelManagedBy: mcpv1.ManagedBy})}
	ofServers, err := labels.NewRequirement(mcpv1.LabelServer, selection.Exists, nil)
	utilruntime.Must(err)
	opts := cache.Options{
		DefaultTransform:         cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: unlessForbidden,
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}:            owned,
			&corev1.Service{}:               owned,
			&corev1.ConfigMap{}:             owned,
			&policyv1.PodDisruptionBudget{}: owned,
			&networkingv1.NetworkPolicy{}:   owned,
			&corev1.Pod{}: {
				Label:     labels.NewSelector().Add(*ofServers),
				Transform: stripPod,
			},
		},
	}
	if len(namespaces) > 0 {
		opts.DefaultNamespaces = map[string]cache.Config{}
		for _, ns := range namespaces {
			opts.DefaultNamespaces[ns] = cache.Config{}
		}
	}
	return opts
}

// CacheSyncTimeout is how long a controller waits for what it watches: for good.
// An operator that may not watch something says so (internal/refusals) and
// begins when it may. One that ended itself would be restarted into the same
// refusal, with a growing delay.
const CacheSyncTimeout = 10 * 365 * 24 * time.Hour

// unlessForbidden logs why a watch failed, but for refusals, which
// internal/refusals logs once and not at every attempt.
func unlessForbidden(ctx context.Context, reflector *toolscache.Reflector, err error) {
	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	}
}

// ClientOptions keep Secrets out of the cache.
func ClientOptions(scheme *runtime.Scheme) client.Options {
	return client.Options{
		Scheme:     scheme,
		FieldOwner: mcpv1.ManagedBy,
		Cache:      &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}},
	}
}

// stripPod keeps of a pod what the operator uses: thousands of pods are held
// in memory.
func stripPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	stripped := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: pod.Labels, Annotations: keepAnnotation(pod.Annotations), OwnerReferences: pod.OwnerReferences,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, ReadinessGates: pod.Spec.ReadinessGates, Volumes: keepCredentials(pod.Spec.Volumes)},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, Reason: pod.Status.Reason, Conditions: pod.Status.Conditions,
			PodIP: pod.Status.PodIP, StartTime: pod.Status.StartTime,
			InitContainerStatuses: pod.Status.InitContainerStatuses, ContainerStatuses: pod.Status.ContainerStatuses,
		},
	}
	return stripped, nil
}

func keepAnnotation(annotations map[string]string) map[string]string {
	if value, ok := annotations[mcpv1.AnnotationCatalog]; ok {
		return map[string]string{mcpv1.AnnotationCatalog: value}
	}
	return nil
}

func keepCredentials(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range volumes {
		if resources.IsCredentials(v.Name) {
			kept = append(kept, v)
		}
	}
	return kept
}
