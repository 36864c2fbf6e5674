// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
)

// Trouble is why pods do not serve.
type Trouble struct {
	// rank orders troubles by how much they explain.
	rank int
	// Reason is one of a condition Available, and Message its words.
	Reason  string
	Message string
	// Pod that has it; empty when it is none's.
	Pod string
}

// World is a server, and what runs for it.
type World struct {
	Server *mcpv1.MCPServer
	// Deployment of the server, or nil.
	Deployment *appsv1.Deployment
	// Pods of the server, sorted.
	Pods []*corev1.Pod
	Now  time.Time
}

// Trouble gives the most telling trouble of the pods that do not take
// traffic, or of the Deployment that cannot make them.
func (w World) Trouble() *Trouble {
	var worst *Trouble
	for _, pod := range w.Pods {
		if pod.DeletionTimestamp != nil || TakesTraffic(pod) || (Finished(pod) && !w.RollingOut()) {
			// One that was evicted, say, stays as an object after another took
			// its place.
			continue
		}
		if t := w.PodTrouble(pod); t != nil && (worst == nil || t.rank < worst.rank) {
			worst = t
		}
	}
	if worst == nil || worst.rank > 5 {
		if t := w.replicaFailure(); t != nil {
			return t
		}
	}
	return worst
}

// PodTrouble tells what keeps one pod from serving; nil when nothing is seen.
func (w World) PodTrouble(pod *corev1.Pod) *Trouble {
	for _, c := range slices.Concat(initialising(pod), pod.Status.ContainerStatuses) {
		if t := w.containerTrouble(pod, c); t != nil {
			return t
		}
	}
	if pod.Status.Phase == corev1.PodFailed {
		return &Trouble{4, mcpv1.ReasonContainerExited, fmt.Sprintf("Pod %s failed (%s). Read: kubectl describe pod %s -n %s.", pod.Name, cmp.Or(pod.Status.Reason, "no reason given"), pod.Name, pod.Namespace), pod.Name}
	}
	if Condition(pod, corev1.PodScheduled) == corev1.ConditionFalse {
		return &Trouble{6, mcpv1.ReasonUnschedulable, fmt.Sprintf("No node takes pod %s. Read: kubectl describe pod %s -n %s. Check spec.workload.resources, nodeSelector, tolerations and affinity.", pod.Name, pod.Name, pod.Namespace), pod.Name}
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
func (w World) containerTrouble(pod *corev1.Pod, c corev1.ContainerStatus) *Trouble {
	where := fmt.Sprintf("container %s of pod %s", c.Name, pod.Name)
	logs := fmt.Sprintf("Read: kubectl logs %s -c %s -n %s", pod.Name, c.Name, pod.Namespace)
	if waits := c.State.Waiting; waits != nil {
		switch waits.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
			return &Trouble{1, mcpv1.ReasonImagePullFailed, fmt.Sprintf("Image %s of %s cannot be pulled. Check the name, and %s.", c.Image, where, w.pullSecretHint()), pod.Name}
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return &Trouble{2, mcpv1.ReasonContainerConfigInvalid, fmt.Sprintf("The %s cannot be started as it is configured. Read: kubectl describe pod %s -n %s. Check spec.workload, and that the image has a user other than root.", where, pod.Name, pod.Namespace), pod.Name}
		}
	}
	last := c.LastTerminationState.Terminated
	if t := c.State.Terminated; t != nil {
		last = t
	}
	switch {
	case last == nil:
		return nil
	case crashLooping(c, last, w.Now):
		return &Trouble{3, mcpv1.ReasonCrashLoopBackOff, fmt.Sprintf("The %s exits again and again%s. %s --previous.", where, exit(last), logs), pod.Name}
	case c.State.Terminated != nil:
		return &Trouble{4, mcpv1.ReasonContainerExited, fmt.Sprintf("The %s exited%s. %s.", where, exit(last), logs), pod.Name}
	case !c.Ready:
		return &Trouble{5, mcpv1.ReasonContainerExited, fmt.Sprintf("The %s was restarted after it exited%s, and is not ready. %s --previous.", where, exit(last), logs), pod.Name}
	default:
		return nil
	}
}

// crashMemory is longer than the kubelet's longest back-off.
const crashMemory = 10 * time.Minute

func crashLooping(c corev1.ContainerStatus, last *corev1.ContainerStateTerminated, now time.Time) bool {
	if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		return true
	}
	return c.RestartCount > 1 && !c.Ready && now.Sub(last.FinishedAt.Time) < crashMemory
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

func (w World) pullSecretHint() string {
	if spec := w.Server.Spec.Workload; spec != nil && len(spec.ImagePullSecrets) > 0 {
		return fmt.Sprintf("that Secret %s exists and may pull it", spec.ImagePullSecrets[0].Name)
	}
	return "whether it needs spec.workload.imagePullSecrets"
}

// replicaFailure tells that the Deployment's pods are refused.
func (w World) replicaFailure() *Trouble {
	if w.Deployment == nil {
		return nil
	}
	for _, c := range w.Deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &Trouble{0, mcpv1.ReasonPodsNotCreated, fmt.Sprintf("Pods are refused (%s), by a quota, a limit range or an admission policy. Read: kubectl describe replicaset -l %s=%s -n %s.", c.Reason, mcpv1.LabelServer, w.Server.Name, w.Server.Namespace), ""}
		}
	}
	return nil
}

// RollingOut reports whether the Deployment has not reached its template or
// number of replicas.
func (w World) RollingOut() bool {
	d := w.Deployment
	if d == nil {
		return true
	}
	want := resources.Replicas(w.Server)
	st := d.Status
	// The pods themselves say sooner than the Deployment that they are ready:
	// a status that waited for it would be written once more.
	available := max(st.AvailableReplicas, Serving(w.Pods))
	return st.ObservedGeneration < d.Generation || st.UpdatedReplicas < want || st.Replicas > want || available < want
}
