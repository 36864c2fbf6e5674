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
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/prober"
)

const (
	containerSpec = `{type: Container, container: {image: i}}`
	externalSpec  = `{type: External, external: {url: "https://mcp.example.com/mcp"}}`
	secretEnvSpec = `{type: Container, container: {image: i}, workload: {env: [{name: T, valueFrom: {secretKeyRef: {name: late, key: token}}}]}}`
	secretVolume  = `{type: Container, container: {image: i}, workload: {volumes: [{name: v, secret: {secretName: late}}], volumeMounts: [{name: v, mountPath: /v}]}}`
	externalCreds = `{type: External, external: {url: "https://mcp.example.com/mcp", headers: [{name: Authorization, secretKeyRef: {name: late, key: token}}]}}`
)

// state is one row of the plan's table of states, or a variant of one.
type state struct {
	spec string
	// before brings the world to where it was; it is passed over once.
	before func(*world)
	// now is what happens then.
	now func(*world)

	ready       string // STATUS REASON
	reconciling string // reason, or empty
	stalled     string // reason, or empty
	// others are further conditions: TYPE to STATUS REASON.
	others map[string]string
	// tools is the tool count, -1 for unknown.
	tools   int32
	message string // a part of Ready's message
}

// unproved is a pod that does not take traffic and has just been made.
func unproved(w *world) *corev1.Pod {
	w.deploy()
	w.deployment.Status.AvailableReplicas, w.deployment.Status.ReadyReplicas = 0, 0
	w.deployment.CreationTimestamp = metav1.NewTime(w.now)
	pod := w.pod("web-1")
	pod.CreationTimestamp = metav1.NewTime(w.now)
	setReady(pod, false)
	return pod
}

func waiting(pod *corev1.Pod, reason string) {
	pod.Status.Phase = corev1.PodPending
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "Back-off " + podSecret}}
}

func serving1(w *world) { w.serving(1) }
func serving3(w *world) { w.serving(3) }

// external says what the prober knows of the External server.
func external(v prober.Verdict, outcome mcpprobe.Outcome, step mcpprobe.Step) func(*world) {
	return func(w *world) {
		r := w.report()
		if outcome != mcpprobe.Proved {
			r = &mcpprobe.Report{Outcome: outcome, Step: step, HTTPStatus: 401}
		}
		w.target(targetExternal, "web", v, r)
	}
}

// tableStates are the rows of the plan's table.
var tableStates = map[string]state{
	// Every pod that takes traffic is proved, at least one is; fronted servers Synced.
	"tools proved": {
		now: serving3, ready: "True Proved", tools: 2,
		others: map[string]string{
			"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Available": "True Available", "Healthy": "True Proved",
			"Synced": "True Synced", "UpstreamsReady": "True NotApplicable", "ContractMet": "True NotApplicable",
		},
		message: "All 3 replicas",
	},
	"container proved": {
		spec: containerSpec, now: serving1, ready: "True Proved", tools: 1, others: map[string]string{"Synced": "True NotApplicable"},
	},
	"external proved": {
		spec: externalSpec, now: external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone), ready: "True Proved", tools: 1,
		others: map[string]string{"Available": "True NotApplicable", "Synced": "True NotApplicable"},
	},
	"proved, and another pod starts": {
		now: func(w *world) {
			w.serving(2)
			young := w.pod("web-3")
			young.CreationTimestamp = metav1.NewTime(w.now.Add(-time.Second))
			setReady(young, false)
			w.deployment.Status.Replicas = 3
		},
		ready: "True Proved", reconciling: "RollingOut", tools: 2, others: map[string]string{"Available": "False RollingOut"},
	},

	"proved, and another pod does not get ready": {
		now: func(w *world) {
			w.serving(2)
			setReady(w.pod("web-3"), false)
			w.deployment.Status.Replicas = 3
		},
		ready: "True Proved", reconciling: "NotReady", tools: 2, others: map[string]string{"Available": "False NotReady"},
	},

	"proved by way of the Service": {
		spec: `{replicas: 2, probe: {via: Service}}`, now: func(w *world) {
			w.serving(2)
			r := w.report()
			r.Pod = nil
			w.targets = map[string]prober.TargetObservation{}
			w.target(targetService, "web-mcp", prober.Proved, r)
		},
		ready: "True Proved", tools: 2, others: map[string]string{"Synced": "True Synced"}, message: "All 2 replicas",
	},
	"a predecessor is not gone yet": {
		now:   func(w *world) { w.problems = []*problem{asProblem(predecessor("Service", "web-mcp"))} },
		ready: "False Starting", reconciling: "Starting", tools: -1, message: "belongs to an MCPServer of this name that was deleted",
	},

	// Replicas 0; suspend.
	"scaled to zero": {
		spec: `replicas: 0`, now: func(w *world) { w.deploy() }, ready: "True ScaledToZero", tools: -1,
		others: map[string]string{"Healthy": "Unknown ScaledToZero", "Synced": "True ScaledToZero", "Available": "True ScaledToZero"},
	},
	"scaling to zero is forbidden": {
		spec: `replicas: 0`, now: func(w *world) {
			w.problems = []*problem{{condition: mcpv1.ConditionAvailable, reason: mcpv1.ReasonForbidden, message: "m"}}
		},
		ready: "False Forbidden", tools: -1, others: map[string]string{"Available": "False Forbidden"},
	},
	"scaled to zero from serving": {
		before: serving3, now: func(w *world) {
			w.spec(`replicas: 0`)
			w.pods, w.targets = nil, nil
			w.deploy()
		},
		ready: "True ScaledToZero", tools: -1, others: map[string]string{"Healthy": "Unknown ScaledToZero"},
	},
	"suspended": {
		spec: `{suspend: true, replicas: 3}`, now: func(w *world) { w.deploy() }, ready: "True Suspended", tools: -1,
		others: map[string]string{"Healthy": "Unknown Suspended", "Synced": "True Suspended"},
	},

	// Needs auth, none given, yet evidently MCP.
	"container wants auth": {
		spec: containerSpec, now: func(w *world) {
			w.deploy()
			w.observe(w.pod("web-1"), prober.AuthRequired, &mcpprobe.Report{Outcome: mcpprobe.AuthRequired, Step: mcpprobe.StepInitialize, HTTPStatus: 401})
		},
		ready: "True AuthRequired", tools: -1, others: map[string]string{"Healthy": "Unknown AuthRequired"},
	},
	"external wants auth": {
		spec: externalSpec, now: external(prober.AuthRequired, mcpprobe.AuthRequired, mcpprobe.StepInitialize),
		ready: "True AuthRequired", tools: -1, others: map[string]string{"Healthy": "Unknown AuthRequired"},
	},
	"external wants auth after it was proved without": {
		spec: externalSpec, before: external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone),
		now:   external(prober.AuthRequired, mcpprobe.AuthRequired, mcpprobe.StepInitialize),
		ready: "True AuthRequired", tools: -1,
	},
	"external wanted auth and is down now": {
		spec: externalSpec, before: external(prober.AuthRequired, mcpprobe.AuthRequired, mcpprobe.StepInitialize),
		now: func(w *world) {
			external(prober.Failing, mcpprobe.Timeout, mcpprobe.StepDial)(w)
			w.later(time.Hour)
		},
		ready: "False Timeout", tools: -1,
	},
	"the credential to give is missing": {
		spec: externalCreds, now: func(w *world) {
			w.noSecret("late")
			external(prober.AuthRequired, mcpprobe.AuthRequired, mcpprobe.StepInitialize)(w)
		},
		ready: "False SecretNotFound", reconciling: "SecretNotFound", tools: -1, others: map[string]string{"ResolvedRefs": "False SecretNotFound"},
	},

	// Credential given and refused.
	"external rejects the credential": {
		spec: externalSpec, before: external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone),
		now:   external(prober.Failing, mcpprobe.AuthRejected, mcpprobe.StepInitialize),
		ready: "False AuthRejected", tools: -1, others: map[string]string{"Healthy": "False AuthRejected"},
	},
	"external always rejected it": {
		spec: externalSpec, now: func(w *world) {
			w.memory.endpointSince = epoch
			external(prober.Failing, mcpprobe.AuthRejected, mcpprobe.StepInitialize)(w)
		},
		ready: "False AuthRejected", tools: -1,
	},

	// Start-up budget running; a reference is missing without which pods cannot start; rollout.
	"nothing there yet": {
		now: func(*world) {}, ready: "False Starting", reconciling: "Starting", tools: -1,
		others: map[string]string{"Healthy": "Unknown Pending", "Synced": "Unknown Pending", "Available": "False Starting"},
	},
	"pods start": {
		now: func(w *world) { unproved(w) }, ready: "False Starting", reconciling: "Starting", tools: -1,
	},
	"pods are ready and not yet probed": {
		now: func(w *world) { setReady(unproved(w), true); w.complete() }, ready: "False Pending", reconciling: "Pending", tools: -1,
	},
	"the first probe of an external server is under way": {
		spec: externalSpec, now: func(w *world) { w.memory.endpointSince = w.now }, ready: "False Pending", reconciling: "Pending", tools: -1,
		others: map[string]string{"Healthy": "Unknown Pending"},
	},
	"external fails within its budget": {
		spec: externalSpec, now: func(w *world) {
			w.memory.endpointSince = w.now
			external(prober.Failing, mcpprobe.DNSFailed, mcpprobe.StepDial)(w)
		},
		ready: "False DNSFailed", reconciling: "Starting", tools: -1,
	},
	"image cannot be pulled, within the budget": {
		now:   func(w *world) { waiting(unproved(w), "ImagePullBackOff") },
		ready: "False ImagePullFailed", reconciling: "Starting", tools: -1, others: map[string]string{"Available": "False ImagePullFailed"},
	},
	"a Secret of the environment is missing": {
		spec: secretEnvSpec, now: func(w *world) {
			w.noSecret("late")
			waiting(unproved(w), "CreateContainerConfigError")
		},
		ready: "False SecretNotFound", reconciling: "SecretNotFound", tools: -1, message: "Secret late",
		others: map[string]string{"Available": "False ContainerConfigInvalid", "ResolvedRefs": "False SecretNotFound"},
	},
	"a Secret of the environment lacks the key": {
		spec: secretEnvSpec, now: func(w *world) {
			w.secret("late", "other")
			waiting(unproved(w), "CreateContainerConfigError")
		},
		ready: "False SecretKeyNotFound", reconciling: "SecretKeyNotFound", tools: -1, message: "no key token",
	},
	"a Secret of the environment is missing for long": {
		spec: secretEnvSpec, now: func(w *world) {
			w.noSecret("late")
			waiting(unproved(w), "CreateContainerConfigError")
			w.later(time.Hour)
		},
		ready: "False SecretNotFound", reconciling: "SecretNotFound", tools: -1,
	},
	"a Secret of a volume is missing for long": {
		spec: secretVolume, now: func(w *world) {
			w.noSecret("late")
			waiting(unproved(w), "ContainerCreating")
			w.later(time.Hour)
		},
		ready: "False SecretNotFound", reconciling: "SecretNotFound", tools: -1,
	},
	"scaled up from zero": {
		spec: `replicas: 0`, before: func(w *world) {
			w.server.Status.LastProbe = &mcpv1.LastProbe{Time: metav1.NewTime(epoch)}
			w.deploy()
		},
		now: func(w *world) {
			w.spec(`replicas: 1`)
			unproved(w)
		},
		ready: "False Starting", reconciling: "Starting", tools: -1,
	},
	"scaled up from zero, no pod made yet": {
		spec: `replicas: 0`, before: func(w *world) {
			w.server.Status.LastProbe = &mcpv1.LastProbe{Time: metav1.NewTime(epoch)}
			w.deploy()
		},
		now: func(w *world) {
			w.spec(`replicas: 1`)
			w.deploy()
			w.deployment.Status.AvailableReplicas = 0
		},
		ready: "False Starting", reconciling: "Starting", tools: -1,
	},
	"rollout keeps its value": {
		before: serving3, now: func(w *world) {
			w.pods[0].DeletionTimestamp = &metav1.Time{Time: w.now}
			young := w.pod("web-4")
			young.Labels["pod-template-hash"] = "hash2"
			w.deployment.Status.UpdatedReplicas, w.deployment.Status.Replicas = 1, 4
		},
		ready: "True Proved", reconciling: "RollingOut", tools: 2,
	},

	// A reference of one registration is missing, or was deleted under running pods.
	"a tool's Secret is missing": {
		now: func(w *world) {
			w.tool("alpha", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: late, key: token}}]}`)
			w.noSecret("late")
			w.serving(1)
		},
		ready: "True Proved", tools: 2, others: map[string]string{"ResolvedRefs": "False SecretNotFound"},
	},
	"a Secret was deleted under running pods": {
		spec: secretEnvSpec, before: func(w *world) { w.secret("late", "token"); w.serving(1) },
		now:   func(w *world) { w.noSecret("late") },
		ready: "True Proved", tools: 1, others: map[string]string{"ResolvedRefs": "False SecretNotFound"},
	},

	// A catalog change is on its way, under 30 s; after that CatalogNotLoaded.
	"a catalog change is on its way": {
		before: serving3, now: func(w *world) { w.tool("alpha", `expression: {text: "'new'"}`) },
		ready: "True Proved", reconciling: "CatalogPending", tools: 2, others: map[string]string{"Synced": "False CatalogPending"},
	},
	"a new tool waits for its Secret to be mounted": {
		before: serving3, now: func(w *world) {
			w.secret("s", "k")
			w.tool("gamma", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: s, key: k}}]}`)
		},
		ready: "True Proved", reconciling: "RolloutForCredentials", tools: 2, others: map[string]string{"Synced": "False RolloutForCredentials"},
	},
	"a catalog change takes too long": {
		before: serving3, now: func(w *world) {
			w.tool("alpha", `expression: {text: "'new'"}`)
			w.pass()
			w.later(31 * time.Second)
		},
		ready: "False CatalogNotLoaded", tools: 2, others: map[string]string{"Synced": "False CatalogNotLoaded", "Healthy": "True Proved"},
		message: "not loaded within 30s (pod web-1: the file has not reached it). It goes on with the one it has. Read what its kubelet and its server say: kubectl describe pod web-1 -n ns, kubectl logs web-1 -n ns.",
	},
	"a replica lists other tools than its catalog has": {
		before: serving3, now: func(w *world) {
			w.later(time.Minute)
			r := w.report()
			r.Tools.Tools = r.Tools.Tools[:1]
			w.observe(w.pods[1], prober.Proved, r)
		},
		ready: "False ListMismatch", tools: 2, others: map[string]string{"Synced": "False ListMismatch"}, message: "web-2",
	},
	"the server image lacks a feature": {
		before: serving1, now: func(w *world) {
			r := w.report()
			r.Pod.CatalogDigest, r.Pod.CatalogState, r.Pod.Missing = "sha256:old", "Unsupported", []string{"timeTravel"}
			w.observe(w.pods[0], prober.Proved, r)
		},
		ready: "False CatalogUnsupported", tools: 2, message: "timeTravel",
	},

	// A pod that takes traffic fails beyond the threshold.
	"one of three fails": {
		spec: containerSpec, before: serving3, now: func(w *world) { w.failing(w.pods[1], mcpprobe.Timeout, mcpprobe.StepInitialize) },
		ready: "False Timeout", tools: 1, message: "1 of 3 replicas fail, web-2 first", others: map[string]string{"Available": "True Available"},
	},
	"the only one answers garbage": {
		spec: containerSpec, before: serving1, now: func(w *world) { w.failing(w.pods[0], mcpprobe.NotMCP, mcpprobe.StepInitialize) },
		ready: "False NotMCP", tools: -1,
	},
	"external is down": {
		spec: externalSpec, before: external(prober.Proved, mcpprobe.Proved, mcpprobe.StepDone),
		now:   external(prober.Failing, mcpprobe.ConnectionRefused, mcpprobe.StepDial),
		ready: "False ConnectionRefused", tools: -1,
	},

	// No pod takes traffic, one did before.
	"all pods crash": {
		before: serving1, now: func(w *world) {
			setReady(w.pods[0], false)
			waiting(w.pods[0], "CrashLoopBackOff")
			w.pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}
			w.deployment.Status.AvailableReplicas = 0
		},
		ready: "False CrashLoopBackOff", tools: -1, message: "status 3",
	},
	"no pod is ready": {
		before: serving1, now: func(w *world) {
			setReady(w.pods[0], false)
			w.deployment.Status.AvailableReplicas = 0
		},
		ready: "False NotReady", tools: -1,
	},
	"no pod is left": {
		before: serving1, now: func(w *world) {
			w.pods = nil
			w.deployment.Status.AvailableReplicas, w.deployment.Status.Replicas = 0, 0
		},
		ready: "False NotReady", tools: -1,
	},

	// Start-up budget over without one success; invalid spec; foreign object in the way.
	"start-up takes too long": {
		now:   func(w *world) { unproved(w); w.later(121 * time.Second) },
		ready: "False StartupTimedOut", stalled: "StartupTimedOut", tools: -1,
	},
	"image cannot be pulled for long": {
		now:   func(w *world) { waiting(unproved(w), "ErrImagePull"); w.later(121 * time.Second) },
		ready: "False ImagePullFailed", stalled: "ImagePullFailed", tools: -1,
	},
	"it never spoke MCP": {
		spec: containerSpec, now: func(w *world) {
			pod := unproved(w)
			setReady(pod, true)
			w.complete()
			w.failing(pod, mcpprobe.NotMCP, mcpprobe.StepInitialize)
			w.later(121 * time.Second)
		},
		ready: "False NotMCP", stalled: "NotMCP", tools: -1,
	},
	"external never answered": {
		spec: externalSpec, now: func(w *world) {
			w.memory.endpointSince = epoch
			external(prober.Failing, mcpprobe.DNSFailed, mcpprobe.StepDial)(w)
		},
		ready: "False DNSFailed", stalled: "DNSFailed", tools: -1,
	},
	"pods are refused by a quota": {
		now: func(w *world) {
			w.deploy()
			w.deployment.Status.AvailableReplicas = 0
			w.deployment.Status.Conditions = refusedPods(w.now)
			w.later(121 * time.Second)
		},
		ready: "False PodsNotCreated", stalled: "PodsNotCreated", tools: -1,
	},
	"invalid filter": {
		spec: `tools: {filter: "tool.nme"}`, now: serving1,
		ready: "False InvalidFilter", stalled: "InvalidFilter", tools: 0, others: map[string]string{"Accepted": "False InvalidFilter"},
	},
	"invalid podTemplate": {
		before: serving1, now: func(w *world) {
			w.problems = []*problem{{condition: mcpv1.ConditionAccepted, reason: mcpv1.ReasonInvalidPodTemplate, message: "m", stalled: true}}
		},
		ready: "False InvalidPodTemplate", stalled: "InvalidPodTemplate", tools: 2, others: map[string]string{"Healthy": "True Proved"},
	},
	"foreign object": {
		now: func(w *world) {
			w.problems = []*problem{asProblem(foreign("Service", "web-mcp"))}
		},
		ready: "False ForeignObject", stalled: "ForeignObject", tools: -1, message: "kubectl get services web-mcp",
		others: map[string]string{"Available": "False ForeignObject"},
	},
}

func TestStates(t *testing.T) {
	for name, test := range states {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.spec)
			if test.before != nil {
				test.before(w)
				w.pass()
				w.later(time.Second)
			}
			test.now(w)
			status := w.pass()
			check := func(what, got, want string) {
				t.Helper()
				if got != want {
					t.Errorf("%s is %q, want %q", what, got, want)
				}
			}
			check("Ready", condition(status.Conditions, "Ready"), test.ready)
			check("Reconciling", condition(status.Conditions, "Reconciling"), orTrue(test.reconciling))
			check("Stalled", condition(status.Conditions, "Stalled"), orTrue(test.stalled))
			for _, c := range serverConditionOrder[:8] {
				want, ok := test.others[c]
				if got := condition(status.Conditions, c); ok && c != "Ready" {
					check(c, got, want)
				} else if got == "-" {
					t.Errorf("%s is missing", c)
				}
			}
			tools := int32(-1)
			if status.ToolCount != nil {
				tools = *status.ToolCount
			}
			if tools != test.tools {
				t.Errorf("tools: %d, want %d", tools, test.tools)
			}
			if ready := conditionVerdict(status.Conditions, "Ready"); !strings.Contains(ready.message, test.message) {
				t.Errorf("Ready says %q, want %q in it", ready.message, test.message)
			}
			if again := w.pass(); !equal(status, again) {
				t.Errorf("a second pass differs:\n%v\n%v", status, again)
			}
		})
	}
}

func orTrue(reason string) string {
	if reason == "" {
		return "-"
	}
	return "True " + reason
}
