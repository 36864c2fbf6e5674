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

	"github.com/espalier-dev/espalier/internal/dialing"
)

// Finished: none of the pod's containers will run again.
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
		if dialing.TakesTraffic(pod) {
			n++
		}
	}
	return n
}
