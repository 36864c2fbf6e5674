// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstate reads from a Deployment and its pods whether they serve, and
// what keeps them from it. The operator and the command of people judge by it
// alike. It is pure: objects in, words out.
package podstate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Condition of the pod; Unknown where it has none of that type.
func Condition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// TakesTraffic reports whether the Service leads to the pod.
func TakesTraffic(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && Condition(pod, corev1.PodReady) == corev1.ConditionTrue
}

// Dialable reports whether the kubelet says that the containers are ready. Whether the pod
// takes traffic does not matter: a readiness gate may wait for the probe.
func Dialable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && Condition(pod, corev1.ContainersReady) == corev1.ConditionTrue
}

// Finished reports whether none of the pod's containers will run again.
func Finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// Sort orders pods by name, so that messages name the same one each time.
func Sort(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// Serving is how many of the pods take traffic.
func Serving(pods []*corev1.Pod) int32 {
	n := int32(0)
	for _, pod := range pods {
		if TakesTraffic(pod) {
			n++
		}
	}
	return n
}
