// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/espalier-dev/espalier/api/v1alpha1"
)

// To gives a pointer to v.
func To[T any](v T) *T { return &v }

// Small are requests that let many pods share a small node.
func Small() *corev1.ResourceRequirements {
	return &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("5m"),
			corev1.ResourceMemory: resource.MustParse("24Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
	}
}

// Server is an MCPServer of type Tools.
func Server(name string, replicas int32, change ...func(*v1alpha1.MCPServer)) *v1alpha1.MCPServer {
	s := &v1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MCPServerSpec{
			Type:                          v1alpha1.TypeTools,
			Replicas:                      &replicas,
			TerminationGracePeriodSeconds: To(int32(10)),
			Workload:                      &v1alpha1.Workload{Resources: Small()},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

// Container is an MCPServer that runs an image of its own.
func Container(name string, replicas int32, image string, args ...string) *v1alpha1.MCPServer {
	return Server(name, replicas, func(s *v1alpha1.MCPServer) {
		s.Spec.Type = v1alpha1.TypeContainer
		s.Spec.Container = &v1alpha1.ContainerSource{Image: image, Args: args}
	})
}

// Stdio is an MCPServer that wraps a command of an image.
func Stdio(name, image string, command ...string) *v1alpha1.MCPServer {
	return Server(name, 1, func(s *v1alpha1.MCPServer) {
		s.Spec.Type = v1alpha1.TypeStdio
		s.Spec.Stdio = &v1alpha1.StdioSource{Image: image, Command: command}
	})
}

// External is an MCPServer that runs elsewhere.
func External(name, url string) *v1alpha1.MCPServer {
	return &v1alpha1.MCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.MCPServerSpec{
			Type:     v1alpha1.TypeExternal,
			External: &v1alpha1.Connection{URL: url},
		},
	}
}

// Probed sets how often and how patiently a server is probed.
func Probed(interval, timeout, threshold int32) func(*v1alpha1.MCPServer) {
	return func(s *v1alpha1.MCPServer) {
		s.Spec.Probe = &v1alpha1.Probe{IntervalSeconds: &interval, TimeoutSeconds: &timeout, FailureThreshold: &threshold}
	}
}

// Tool is an MCPTool of server without a handler.
func Tool(name, server string, change ...func(*v1alpha1.MCPTool)) *v1alpha1.MCPTool {
	t := &v1alpha1.MCPTool{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MCPToolSpec{RegistrationSpec: v1alpha1.RegistrationSpec{ServerRefs: []v1alpha1.ServerRef{{Name: server}}}},
	}
	for _, c := range change {
		c(t)
	}
	return t
}

// Says makes a tool answer with the text of a CEL expression.
func Says(expression string) func(*v1alpha1.MCPTool) {
	return func(t *v1alpha1.MCPTool) { t.Spec.Expression = &v1alpha1.Result{Text: expression} }
}

// Gets makes a tool answer by a GET of url.
func Gets(url string, headers ...v1alpha1.Header) func(*v1alpha1.MCPTool) {
	return func(t *v1alpha1.MCPTool) {
		t.Spec.HTTP = &v1alpha1.HTTPHandler{
			Connection: v1alpha1.Connection{URL: url, Headers: headers},
			Method:     "GET",
		}
	}
}

// Pod security that restricted wants of a test's own pods.
func restrictedContainer(name, image string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Args: args, Resources: *Small(),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: To(false),
			ReadOnlyRootFilesystem:   To(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func restrictedPod(containers ...corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken:  To(false),
		TerminationGracePeriodSeconds: To(int64(1)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   To(true),
			RunAsUser:      To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: containers,
	}
}

// Workload is a Deployment of one pod, and a Service of its name on port 80
// that leads to port of the pod.
func Workload(name, image string, port int32, args ...string) (*appsv1.Deployment, *corev1.Service) {
	labels := map[string]string{"app": name}
	c := restrictedContainer(name, image, args...)
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: port}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("http")}},
		PeriodSeconds: 1,
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: restrictedPod(c)},
		},
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.ServiceSpec{
			Selector: labels,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
		},
	}
	return deployment, service
}
