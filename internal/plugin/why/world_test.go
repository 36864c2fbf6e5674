// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
)

// noon is now in these tests; all that is kept happened five minutes before.
var noon = time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)

var (
	lives = operator.Life{Known: true, Alive: true, Namespace: "espalier-system", Renewed: noon, Now: noon}
	down  = operator.Life{Known: true, Namespace: "espalier-system", Renewed: noon.Add(-3 * time.Minute), Now: noon}
)

// stored reads an object as the API server stored it in a state.
func stored[T any](t *testing.T, file string) *T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "test", "states", "testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := yaml.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// seen gives facts of a server whose pods are as its status says.
func seen(t *testing.T, state string) *Facts {
	t.Helper()
	server := stored[mcpv1.MCPServer](t, "mcpserver-"+state)
	f := &Facts{
		Server: server, Life: lives, Now: noon, Servers: map[string]*mcpv1.MCPServer{server.Name: server},
		Named: map[NamedID]Named{}, Logs: map[string][]string{}, Unread: map[string]string{},
	}
	if !resources.HasPods(server) {
		return f
	}
	want := resources.Replicas(server)
	ready := ptr.Deref(server.Status.ReadyReplicas, 0)
	for i := range ptr.Deref(server.Status.Replicas, 0) {
		f.Pods = append(f.Pods, pod(fmt.Sprintf("%s-mcp-1-%d", server.Name, i), i < ready))
	}
	f.Deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: resources.Name(server), Namespace: server.Namespace},
		Spec:       appsv1.DeploymentSpec{Replicas: &want},
		Status:     appsv1.DeploymentStatus{Replicas: want, UpdatedReplicas: want, AvailableReplicas: podstate.Serving(f.Pods)},
	}
	return f
}

func pod(name string, ready bool) *corev1.Pod {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", CreationTimestamp: metav1.NewTime(noon.Add(-5 * time.Minute))},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "server"}}},
		Status: corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "server", Ready: ready}},
		},
	}
}

// waits has the container of the first pod wait, for a reason.
func (f *Facts) waitsFor(reason, message string) *corev1.ContainerStatus {
	c := &f.Pods[0].Status.ContainerStatuses[0]
	c.Image, c.Ready = "example.test/none:1", false
	c.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
	f.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	return c
}

// exits has the container of the first pod exit again and again.
func (f *Facts) exits(code int32) {
	c := f.waitsFor("CrashLoopBackOff", "back-off 5m0s restarting failed container")
	c.RestartCount = 4
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.NewTime(noon.Add(-20 * time.Second))}
}
