// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// deploymentStep: the objects are there, and make pods.
func (f *Facts) deploymentStep() Step {
	if !resources.HasPods(f.Server) {
		return Step{Name: stepDeployment, State: None, Message: "The server runs elsewhere."}
	}
	if c := f.condition(mcpv1.ConditionAvailable); c != nil && f.current() {
		switch c.Reason {
		case mcpv1.ReasonForeignObject, mcpv1.ReasonForbidden, mcpv1.ReasonApplyFailed:
			step := fromCondition(stepDeployment, c)
			step.blocks = f.traffic() == 0 || f.isReason(c.Reason)
			return step
		}
	}
	switch {
	case f.Unread["deployments"] != "":
		return Step{Name: stepDeployment, State: Unknown, Message: "Whether there is a Deployment is not known."}
	case f.Deployment == nil && f.zero():
		return Step{Name: stepDeployment, State: None, Message: "No pods are wanted."}
	case f.Deployment == nil:
		return Step{Name: stepDeployment, State: Broken, blocks: true,
			Message: fmt.Sprintf("There is no Deployment %s.", resources.Name(f.Server)),
			Do:      []string{"See what the operator does: it makes one as soon as the spec is sound."}}
	}
	return f.makesPods()
}

// makesPods: the Deployment that is there makes pods.
func (f *Facts) makesPods() Step {
	name := resources.Name(f.Server)
	step := Step{Name: stepDeployment, State: OK}
	step.Message = fmt.Sprintf("Deployment %s makes the pods.", name)
	if t := f.world().Trouble(); t != nil && t.Pod == "" {
		step.State, step.Reason, step.blocks = Broken, t.Reason, f.traffic() == 0
		step.Message, step.Do = split(t.Message)
		step.Evidence = f.refusals()
		return step
	}
	if f.Deployment.Spec.Paused {
		step.State, step.blocks = Broken, f.traffic() == 0
		step.Message = fmt.Sprintf("Deployment %s is paused: no change of it reaches the pods.", name)
		step.Do = []string{fmt.Sprintf("Let it go on: kubectl rollout resume deployment/%s -n %s.", name, f.Server.Namespace)}
		return step
	}
	if have, want := f.Deployment.Spec.Replicas, resources.Replicas(f.Server); have != nil && *have == 0 && want > 0 {
		step.State, step.blocks = Broken, true
		step.Message = fmt.Sprintf("Deployment %s asks for 0 pods, and the MCPServer wants %d.", name, want)
		step.Do = []string{"Scale the MCPServer and not the Deployment: the operator puts the Deployment back as soon as it lives."}
	}
	return step
}

// refusals are the words of the API server that refused pods.
func (f *Facts) refusals() []string {
	var out []string
	for _, c := range f.Deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			out = append(out, fmt.Sprintf("Deployment %s: %s: %s", f.Deployment.Name, c.Reason, plain(c.Message)))
		}
	}
	if len(out) == 0 {
		out = f.eventsOn("ReplicaSet", "")
	}
	return out
}

// podsStep: pods run and take traffic. fails: the probe met a failure, and so
// there are some that do.
func (f *Facts) podsStep(fails bool) Step {
	switch {
	case !resources.HasPods(f.Server):
		return Step{Name: stepPods, State: None, Message: "The server runs elsewhere."}
	case f.zero():
		return f.idle()
	case f.Unread["pods"] != "":
		return f.byStatus(stepPods, mcpv1.ConditionAvailable)
	}
	step := Step{Name: stepPods, State: OK, Message: fmt.Sprintf("%d of %d pods take traffic.", f.traffic(), resources.Replicas(f.Server))}
	if t := f.world().Trouble(); t != nil && t.Pod != "" {
		step.State, step.Reason, step.blocks = Broken, t.Reason, !fails || f.traffic() == 0
		step.Message, step.Do = split(t.Message)
		step.Evidence = f.podEvidence(t.Pod)
		return step
	}
	c := f.condition(mcpv1.ConditionAvailable)
	if c != nil && f.current() && c.Status == metav1.ConditionFalse && c.ObservedGeneration == f.Server.Generation {
		switch c.Reason {
		case mcpv1.ReasonNotReady, mcpv1.ReasonStarting, mcpv1.ReasonRollingOut:
			step = fromCondition(stepPods, c)
			step.blocks = f.traffic() == 0
			if pod := f.waits(); pod != nil {
				step.Evidence = f.podEvidence(pod.Name)
			}
			return step
		}
	}
	if f.traffic() == 0 {
		step.State, step.Reason, step.blocks = UnderWay, mcpv1.ReasonStarting, true
		if pod := f.waits(); pod != nil {
			step.Evidence = f.podEvidence(pod.Name)
			step.Do = []string{fmt.Sprintf("Read: kubectl describe pod %s -n %s.", pod.Name, pod.Namespace)}
		}
	}
	return step
}

// idle: no pods are wanted.
func (f *Facts) idle() Step {
	step := Step{Name: stepPods, State: Idle, Reason: mcpv1.ReasonScaledToZero, Message: "spec.replicas is 0: there are no pods.", blocks: true,
		Do: []string{fmt.Sprintf("Scale it: kubectl scale mcpserver/%s --replicas=1 -n %s.", f.Server.Name, f.Server.Namespace)}}
	if resources.Suspended(f.Server) {
		step.Reason, step.Message = mcpv1.ReasonSuspended, "spec.suspend is true: there are no pods."
		step.Do = []string{fmt.Sprintf(`Set it to false: kubectl patch mcpserver/%s --type=merge -p '{"spec":{"suspend":false}}' -n %s.`, f.Server.Name, f.Server.Namespace)}
	}
	return step
}

// waits is the first pod that does not take traffic and may come to.
func (f *Facts) waits() *corev1.Pod {
	for _, pod := range f.Pods {
		if pod.DeletionTimestamp == nil && !podstate.TakesTraffic(pod) && !podstate.Finished(pod) {
			return pod
		}
	}
	return nil
}

// podEvidence is what the cluster says of a pod: the scheduler, the kubelet,
// its containers, its events and the last lines of its log.
func (f *Facts) podEvidence(name string) []string {
	at := slices.IndexFunc(f.Pods, func(p *corev1.Pod) bool { return p.Name == name })
	if at < 0 {
		return nil
	}
	pod := f.Pods[at]
	var out []string
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			out = append(out, fmt.Sprintf("The scheduler: %s: %s", c.Reason, plain(c.Message)))
		}
	}
	if pod.Status.Message != "" {
		out = append(out, fmt.Sprintf("Pod %s: %s: %s", pod.Name, pod.Status.Reason, plain(pod.Status.Message)))
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		out = append(out, f.containerEvidence(c)...)
	}
	out = append(out, f.eventsOn("Pod", name)...)
	return append(out, f.logOf(name)...)
}

func (f *Facts) containerEvidence(c corev1.ContainerStatus) []string {
	var out []string
	if w := c.State.Waiting; w != nil && w.Reason != "" {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("Container %s waits: %s: %s", c.Name, w.Reason, plain(w.Message)), ": "))
	}
	for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if t == nil || (t.ExitCode == 0 && t.Reason == "Completed") {
			continue
		}
		text := fmt.Sprintf("Container %s ended %s ago with status %d (%s), restarted %d times", c.Name,
			duration.HumanDuration(max(f.Now.Sub(t.FinishedAt.Time), 0)), t.ExitCode, t.Reason, c.RestartCount)
		if t.Message != "" {
			text += ": " + plain(t.Message)
		}
		out = append(out, text)
		break
	}
	return out
}

// maxEvents of one object are shown.
const maxEvents = 3

// eventsOn are the newest warnings about an object; an empty name is any of
// the kind.
func (f *Facts) eventsOn(kind, name string) []string {
	var out []string
	var seen []string
	for _, e := range f.Events {
		if e.On != kind+"/"+name && (name != "" || !strings.HasPrefix(e.On, kind+"/")) {
			continue
		}
		if slices.Contains(seen, e.Reason) {
			continue
		}
		seen = append(seen, e.Reason)
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times)", e.Count)
		}
		out = append(out, fmt.Sprintf("Event %s, %s ago%s: %s", e.Reason, duration.HumanDuration(max(f.Now.Sub(e.Last), 0)), times, plain(e.Message)))
		if len(out) == maxEvents {
			break
		}
	}
	return out
}

// logOf are the last lines that a pod wrote.
func (f *Facts) logOf(pod string) []string {
	lines := f.Logs[pod]
	if len(lines) == 0 {
		return nil
	}
	out := []string{fmt.Sprintf("The last lines of the log of pod %s:", pod)}
	for _, line := range lines {
		out = append(out, "  "+plain(line))
	}
	return out
}

// maxPlain is how many bytes of others' words are shown.
const maxPlain = 400

// plain makes others' words fit to be shown on a terminal: one line, without
// control characters, bounded.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case r < ' ' || (r >= 0x7f && r < 0xa0) || r == '\u202e' || r == '\u2028' || r == '\u2029' || r == 0xfffd:
			return '?'
		}
		return r
	}, strings.TrimSpace(text))
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxPlain {
		text = strings.ToValidUTF8(text[:maxPlain], "") + "..."
	}
	return text
}
