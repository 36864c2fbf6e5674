// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config tests what config/ installs on a real API server.
package config

import (
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/espalier-dev/espalier/test/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	apiserver.Main(m, func(s *apiserver.Server) { server = s })
}

// TestInstall: the server takes all of config/default, with no unknown field,
// and the operator's pod passes the Pod Security level of its namespace.
func TestInstall(t *testing.T) {
	var deployment *appsv1.Deployment
	for _, object := range build(t, "default") {
		apply(t, object)
		if object.GetKind() == "Deployment" {
			deployment = &appsv1.Deployment{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
				t.Fatal(err)
			}
		}
	}
	if deployment == nil {
		t.Fatal("config/default has no Deployment")
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: deployment.Namespace},
		Spec:       deployment.Spec.Template.Spec,
	}
	if err := server.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Errorf("The operator's pod is refused: %v", err)
	}
	pod.Spec.HostNetwork = true
	if err := server.Client.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("The namespace does not enforce Pod Security: %v", err)
	}
}

// TestChart: the server takes all that the chart renders, with its defaults and
// with everything set, with no unknown field. Kinds of the Prometheus operator
// are not known here.
func TestChart(t *testing.T) {
	for _, name := range []string{"team-a", "team-b", "espalier-system"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := server.Client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for _, values := range []string{"default", "full", "namespaced"} {
		objects, err := apiserver.ReadObjects(apiserver.Path("hack", "helm", "testdata", values+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		applied := 0
		for _, object := range objects {
			if object.GroupVersionKind().Group == "monitoring.coreos.com" {
				continue
			}
			apply(t, object)
			applied++
		}
		if applied < 10 {
			t.Errorf("%s: only %d objects", values, applied)
		}
	}
}

func TestSamples(t *testing.T) {
	for _, object := range build(t, "samples") {
		object.SetNamespace("default")
		apply(t, object)
	}
}

// build is what kustomize makes of a folder of config/.
func build(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	script := `"$(hack/tool kustomize)" build "config/$1" > "$2"`
	file := filepath.Join(t.TempDir(), "objects.yaml")
	command := exec.CommandContext(t.Context(), "bash", "-c", script, "build", folder, file)
	command.Dir = apiserver.Path()
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	objects, err := apiserver.ReadObjects(file)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func apply(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	err := server.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()),
		client.FieldOwner("test"), client.ForceOwnership)
	if err != nil {
		t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
	}
}
