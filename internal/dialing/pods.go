// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package dialing

import corev1 "k8s.io/api/core/v1"

// PodCondition gives the status of a condition, Unknown where pod has none.
func PodCondition(pod *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}

// TakesTraffic reports whether the Service leads to the pod.
func TakesTraffic(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && PodCondition(pod, corev1.PodReady) == corev1.ConditionTrue
}

// Dialable reports whether the kubelet says that the containers are ready.
// Whether the pod takes traffic does not matter: a readiness gate may wait for
// the probe.
func Dialable(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.PodIP != "" && PodCondition(pod, corev1.ContainersReady) == corev1.ConditionTrue
}
