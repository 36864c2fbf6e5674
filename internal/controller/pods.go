// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

func restarts(pod *corev1.Pod) int {
	n := 0
	for _, c := range pod.Status.ContainerStatuses {
		n += int(c.RestartCount)
	}
	return n
}

// world is what the state of the pods is read from.
func (s *serverScope) world() podstate.World {
	return podstate.World{Server: s.server, Deployment: s.deployment, Pods: s.pods, Now: s.now}
}

// latePod is the first pod that is not ready although its time to start is
// over. A pod that still has time is looked at again when that ends.
func latePod(s *serverScope) *corev1.Pod {
	var late *corev1.Pod
	budget := time.Duration(resources.StartupSeconds(s.server)) * time.Second
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil || podstate.Finished(pod) || podstate.TakesTraffic(pod) {
			continue
		}
		if left := budget - s.now.Sub(pod.CreationTimestamp.Time); left > 0 {
			s.again(left + 100*time.Millisecond)
		} else if late == nil {
			late = pod
		}
	}
	return late
}

// startupBegan is since when the pods of the newest template have been given
// time to start: the creation of the first of them.
func startupBegan(s *serverScope) time.Time {
	var newest, began time.Time
	hash := ""
	for _, pod := range s.pods {
		if at := pod.CreationTimestamp.Time; at.After(newest) {
			newest, hash = at, pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
		}
	}
	for _, pod := range s.pods {
		if at := pod.CreationTimestamp.Time; pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash && (began.IsZero() || at.Before(began)) {
			began = at
		}
	}
	if began.IsZero() && s.deployment != nil {
		began = s.deployment.CreationTimestamp.Time
		for _, c := range s.deployment.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.LastTransitionTime.After(began) {
				began = c.LastTransitionTime.Time
			}
		}
	}
	return began
}
