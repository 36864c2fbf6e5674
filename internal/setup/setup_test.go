// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
)

// TestStripPod keeps what the operator uses and nothing that may be large or
// secret.
func TestStripPod(t *testing.T) {
	credentials, keys := corev1.Volume{Name: resources.VolumeCredentials}, corev1.Volume{Name: resources.VolumeAPIKeys}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "ns", UID: "uid", ResourceVersion: "1", Labels: map[string]string{mcpv1.LabelServer: "web"},
			Annotations: map[string]string{mcpv1.AnnotationCatalog: "d-1", "other": "large"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n", Volumes: []corev1.Volume{{Name: "other"}, credentials, keys}, ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "g"}},
			Containers: []corev1.Container{{Name: "server", Env: []corev1.EnvVar{{Name: "TOKEN", Value: "secret"}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "server"}}},
	}
	got, err := stripPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	want := pod.DeepCopy()
	want.ManagedFields, want.Spec.Containers = nil, nil
	want.Annotations = map[string]string{mcpv1.AnnotationCatalog: "d-1"}
	want.Spec.Volumes = []corev1.Volume{credentials, keys}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if other, err := stripPod("tombstone"); err != nil || other != "tombstone" {
		t.Errorf("%v, %v", other, err)
	}
}

// TestCache: no Secrets, and of common kinds only what bears our label.
func TestCache(t *testing.T) {
	for _, namespaces := range [][]string{nil, {"a", "b"}} {
		options := CacheOptions(namespaces)
		for obj, by := range options.ByObject {
			if _, ok := obj.(*corev1.Secret); ok {
				t.Error("Secrets are cached")
			}
			if by.Label == nil || by.Label.Empty() {
				t.Errorf("all %T of the cluster are cached", obj)
			}
		}
		if len(options.DefaultNamespaces) != len(namespaces) {
			t.Errorf("limited to %v, want %v", options.DefaultNamespaces, namespaces)
		}
	}
	scheme := Scheme()
	disabled := ClientOptions(scheme).Cache.DisableFor
	if len(disabled) != 1 {
		t.Fatalf("not cached are %v", disabled)
	}
	if _, ok := disabled[0].(*corev1.Secret); !ok {
		t.Errorf("not cached is %T", disabled[0])
	}
	if !scheme.Recognizes(mcpv1.GroupVersion.WithKind("MCPTool")) {
		t.Error("the scheme does not know MCPTool")
	}
}
