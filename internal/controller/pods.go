// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/resources"
)

// finished: none of the pod's containers will run again.
func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func restarts(pod *corev1.Pod) int {
	n := 0
	for _, c := range pod.Status.ContainerStatuses {
		n += int(c.RestartCount)
	}
	return n
}

// sortPods orders pods by name, so that messages name the same one each time.
func sortPods(pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}

// trouble is why pods do not serve, in the order of how much it explains.
type trouble struct {
	rank    int
	reason  string
	message string
}

// podsTrouble gives the most telling trouble of the pods that do not take
// traffic, or of the Deployment that cannot make them.
func podsTrouble(s *serverScope) *trouble {
	var worst *trouble
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil || dialing.TakesTraffic(pod) || (finished(pod) && !rollingOut(s)) {
			// One that was evicted, say, stays as an object after another took
			// its place.
			continue
		}
		if t := podTrouble(s, pod); t != nil && (worst == nil || t.rank < worst.rank) {
			worst = t
		}
	}
	if worst == nil || worst.rank > 5 {
		if t := replicaFailure(s); t != nil {
			return t
		}
	}
	return worst
}

func podTrouble(s *serverScope, pod *corev1.Pod) *trouble {
	for _, c := range slices.Concat(initialising(pod), pod.Status.ContainerStatuses) {
		if t := containerTrouble(s, pod, c); t != nil {
			return t
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return &trouble{4, mcpv1.ReasonContainerExited, fmt.Sprintf("Pod %s failed (%s). Read: kubectl describe pod %s -n %s.", pod.Name, cmp.Or(pod.Status.Reason, "no reason given"), pod.Name, pod.Namespace)}
	}
	if dialing.PodCondition(pod, corev1.PodScheduled) == corev1.ConditionFalse {
		return &trouble{6, mcpv1.ReasonUnschedulable, fmt.Sprintf("No node takes pod %s. Read: kubectl describe pod %s -n %s. Check spec.workload.resources, nodeSelector, tolerations and affinity.", pod.Name, pod.Name, pod.Namespace)}
	}
	return nil
}

// initialising are the init containers of the pod that have not done their
// work yet.
func initialising(pod *corev1.Pod) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, c := range pod.Status.InitContainerStatuses {
		if t := c.State.Terminated; t == nil || t.ExitCode != 0 {
			out = append(out, c)
		}
	}
	return out
}

// containerTrouble tells what keeps a container from serving. The texts do not
// follow the kubelet's own steps back and forth (ErrImagePull and
// ImagePullBackOff, running and waiting between two crashes): each would be a
// write of a status that says nothing new.
func containerTrouble(s *serverScope, pod *corev1.Pod, c corev1.ContainerStatus) *trouble {
	where := fmt.Sprintf("container %s of pod %s", c.Name, pod.Name)
	logs := fmt.Sprintf("Read: kubectl logs %s -c %s -n %s", pod.Name, c.Name, pod.Namespace)
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
			return &trouble{1, mcpv1.ReasonImagePullFailed, fmt.Sprintf("Image %s of %s cannot be pulled. Check the name, and %s.", c.Image, where, pullSecretHint(s))}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return &trouble{2, mcpv1.ReasonContainerConfigInvalid, fmt.Sprintf("The %s cannot be started as it is configured. Read: kubectl describe pod %s -n %s. Check spec.workload, and that the image has a user other than root.", where, pod.Name, pod.Namespace)}
		}
	}
	last := c.LastTerminationState.Terminated
	if t := c.State.Terminated; t != nil {
		last = t
	}
	switch {
	case last == nil:
		return nil
	case crashLooping(s, c, last):
		return &trouble{3, mcpv1.ReasonCrashLoopBackOff, fmt.Sprintf("The %s exits again and again%s. %s --previous.", where, exit(last), logs)}
	case c.State.Terminated != nil:
		return &trouble{4, mcpv1.ReasonContainerExited, fmt.Sprintf("The %s exited%s. %s.", where, exit(last), logs)}
	case !c.Ready:
		return &trouble{5, mcpv1.ReasonContainerExited, fmt.Sprintf("The %s was restarted after it exited%s, and is not ready. %s --previous.", where, exit(last), logs)}
	default:
		return nil
	}
}

// crashMemory is longer than the kubelet's longest back-off.
const crashMemory = 10 * time.Minute

func crashLooping(s *serverScope, c corev1.ContainerStatus, last *corev1.ContainerStateTerminated) bool {
	if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		return true
	}
	return c.RestartCount > 1 && !c.Ready && s.now.Sub(last.FinishedAt.Time) < crashMemory
}

func exit(t *corev1.ContainerStateTerminated) string {
	switch {
	case t == nil:
		return ""
	case t.Signal != 0:
		return fmt.Sprintf(" by signal %d (%s)", t.Signal, cmp.Or(t.Reason, "Error"))
	default:
		return fmt.Sprintf(" with status %d (%s)", t.ExitCode, cmp.Or(t.Reason, "Error"))
	}
}

func pullSecretHint(s *serverScope) string {
	if w := s.server.Spec.Workload; w != nil && len(w.ImagePullSecrets) > 0 {
		return fmt.Sprintf("that Secret %s exists and may pull it", w.ImagePullSecrets[0].Name)
	}
	return "whether it needs spec.workload.imagePullSecrets"
}

// replicaFailure tells that the Deployment's pods are refused.
func replicaFailure(s *serverScope) *trouble {
	if s.deployment == nil {
		return nil
	}
	for _, c := range s.deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &trouble{0, mcpv1.ReasonPodsNotCreated, fmt.Sprintf("Pods are refused (%s), by a quota, a limit range or an admission policy. Read: kubectl describe replicaset -l %s=%s -n %s.", c.Reason, mcpv1.LabelServer, s.server.Name, s.server.Namespace)}
		}
	}
	return nil
}

// rollingOut reports whether the Deployment has not reached its template or
// number of replicas.
func rollingOut(s *serverScope) bool {
	d := s.deployment
	if d == nil {
		return true
	}
	want := resources.Replicas(s.server)
	st := d.Status
	// The pods themselves say sooner than the Deployment that they are ready:
	// a status that waited for it would be written once more.
	available := max(st.AvailableReplicas, serving(s.pods))
	return st.ObservedGeneration < d.Generation || st.UpdatedReplicas < want || st.Replicas > want || available < want
}

// serving is how many of the pods take traffic.
func serving(pods []*corev1.Pod) int32 {
	n := int32(0)
	for _, pod := range pods {
		if dialing.TakesTraffic(pod) {
			n++
		}
	}
	return n
}

// latePod is the first pod that is not ready although its time to start is
// over. A pod that still has time is looked at again when that ends.
func latePod(s *serverScope) *corev1.Pod {
	var late *corev1.Pod
	budget := time.Duration(resources.StartupSeconds(s.server)) * time.Second
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil || finished(pod) || dialing.TakesTraffic(pod) {
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
