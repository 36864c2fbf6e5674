// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// container is the state of the server's container.
type container func(*corev1.ContainerStatus)

func isWaiting(reason string) container {
	return func(c *corev1.ContainerStatus) {
		c.Image = "ghcr.io/acme/none:1"
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: podSecret}}
	}
}

func terminated(code, signal int32, reason string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Signal: signal, Reason: reason, Message: podSecret, FinishedAt: metav1.NewTime(epoch.Add(10 * time.Minute))}
}

// TestPodsTrouble: each trouble has its reason, names the pod and the place to
// look, and repeats nothing that the container said.
func TestPodsTrouble(t *testing.T) {
	tests := map[string]struct {
		state    container
		pod      func(*corev1.Pod)
		reason   string
		messages []string
	}{
		"image pull back-off": {state: isWaiting("ImagePullBackOff"), reason: mcpv1.ReasonImagePullFailed, messages: []string{"ghcr.io/acme/none:1", "imagePullSecrets"}},
		"image pull error":    {state: isWaiting("ErrImagePull"), reason: mcpv1.ReasonImagePullFailed, messages: []string{"ghcr.io/acme/none:1"}},
		"invalid image":       {state: isWaiting("InvalidImageName"), reason: mcpv1.ReasonImagePullFailed},
		"config":              {state: isWaiting("CreateContainerConfigError"), reason: mcpv1.ReasonContainerConfigInvalid, messages: []string{"describe pod web-1", "other than root"}},
		"crash loop": {state: func(c *corev1.ContainerStatus) {
			isWaiting("CrashLoopBackOff")(c)
			c.LastTerminationState.Terminated = terminated(3, 0, "Error")
		}, reason: mcpv1.ReasonCrashLoopBackOff, messages: []string{"status 3 (Error)", "--previous"}},
		"killed": {state: func(c *corev1.ContainerStatus) {
			isWaiting("CrashLoopBackOff")(c)
			c.LastTerminationState.Terminated = terminated(137, 9, "OOMKilled")
		}, reason: mcpv1.ReasonCrashLoopBackOff, messages: []string{"signal 9 (OOMKilled)"}},
		"exited": {state: func(c *corev1.ContainerStatus) {
			c.State = corev1.ContainerState{Terminated: terminated(1, 0, "")}
		}, reason: mcpv1.ReasonContainerExited, messages: []string{"exited with status 1 (Error)"}},
		"restarted once": {state: func(c *corev1.ContainerStatus) {
			c.RestartCount = 1
			c.LastTerminationState.Terminated = terminated(2, 0, "Error")
		}, reason: mcpv1.ReasonContainerExited, messages: []string{"was restarted", "status 2"}},
		"failed": {pod: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", podSecret
		}, reason: mcpv1.ReasonContainerExited, messages: []string{"Evicted"}},
		"unschedulable": {pod: func(p *corev1.Pod) {
			p.Status.ContainerStatuses = nil
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: podSecret}}
		}, reason: mcpv1.ReasonUnschedulable, messages: []string{"No node takes pod web-1", "nodeSelector"}},
		"init failed": {pod: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "espalier-install", State: corev1.ContainerState{Terminated: terminated(1, 0, "")}}}
		}, reason: mcpv1.ReasonContainerExited, messages: []string{"espalier-install", "status 1"}},
		"init done": {pod: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "espalier-install", State: corev1.ContainerState{Terminated: terminated(0, 0, "Completed")}}}
		}},
		"init done at the third attempt": {pod: func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{
				Name: "espalier-install", RestartCount: 2, State: corev1.ContainerState{Terminated: terminated(0, 0, "Completed")},
				LastTerminationState: corev1.ContainerState{Terminated: terminated(1, 0, "Error")},
			}}
		}},
		"merely starting": {},
		"creating":        {state: isWaiting("ContainerCreating")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, containerSpec)
			pod := unproved(w)
			if test.state != nil {
				test.state(&pod.Status.ContainerStatuses[0])
			}
			if test.pod != nil {
				test.pod(pod)
			}
			got := w.scope().world().Trouble()
			if test.reason == "" {
				if got != nil {
					t.Errorf("trouble where there is none: %+v", got)
				}
				return
			}
			if got == nil || got.Reason != test.reason {
				t.Fatalf("trouble %+v, want %s", got, test.reason)
			}
			for _, part := range append(test.messages, "web-1") {
				if !strings.Contains(got.Message, part) {
					t.Errorf("message %q lacks %q", got.Message, part)
				}
			}
			if strings.Contains(got.Message, podSecret) {
				t.Errorf("message repeats what the container said: %q", got.Message)
			}
			w.pass()
		})
	}
}

// TestWorstTrouble: of several, the one that explains most is told, and of
// equal ones always the same.
func TestWorstTrouble(t *testing.T) {
	w := newWorld(t, containerSpec)
	w.deploy()
	w.deployment.Status.AvailableReplicas = 0
	for name, state := range map[string]container{
		"web-c": isWaiting("CrashLoopBackOff"), "web-b": isWaiting("ErrImagePull"), "web-a": isWaiting("ImagePullBackOff"),
	} {
		pod := w.pod(name)
		setReady(pod, false)
		state(&pod.Status.ContainerStatuses[0])
	}
	for range 5 {
		if got := w.scope().world().Trouble(); got.Reason != mcpv1.ReasonImagePullFailed || !strings.Contains(got.Message, "web-a") {
			t.Errorf("told is %+v", got)
		}
	}
	w.pods = nil
	w.deployment.Status.Conditions = refusedPods(w.now)
	if got := w.scope().world().Trouble(); got == nil || got.Reason != mcpv1.ReasonPodsNotCreated || strings.Contains(got.Message, podSecret) {
		t.Errorf("told is %+v", got)
	}
}

// TestPullSecretIsNamed (C12).
func TestPullSecretIsNamed(t *testing.T) {
	w := newWorld(t, `{type: Container, container: {image: i}, workload: {imagePullSecrets: [{name: regcred}]}}`)
	isWaiting("ErrImagePull")(&unproved(w).Status.ContainerStatuses[0])
	if got := w.scope().world().Trouble(); got == nil || !strings.Contains(got.Message, "regcred") {
		t.Errorf("told is %+v", got)
	}
}
