// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEqualsKustomize: with its defaults the chart installs what
// config/default installs, to the last field. The namespace is Helm's to make.
func TestEqualsKustomize(t *testing.T) {
	ours, theirs := render(t, `{}`), kustomize(t, "default")
	namespace := "Namespace /espalier-system"
	theirs.get(t, namespace)
	delete(theirs, namespace)
	compare(t, ours, theirs)
}

// TestMonitoringEqualsKustomize: and so do the monitors, alerts and dashboard.
func TestMonitoringEqualsKustomize(t *testing.T) {
	const folder = "prometheus"
	theirs := objects{}
	for _, object := range kustomize(t, folder) {
		// config/default would add these.
		object.SetNamespace(release.Namespace)
		switch name := object.GetName(); name {
		case "rules":
			object.SetName("espalier")
		default:
			object.SetName("espalier-" + name)
		}
		theirs[object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()] = object
	}
	values := `{metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}`
	for id, value := range map[string]string{
		"PrometheusRule espalier-system/espalier":      `, prometheusRule: {enabled: true}`,
		"ConfigMap espalier-system/espalier-dashboard": `, dashboard: {enabled: true}`,
	} {
		if theirs[id] != nil {
			values += value
		}
	}
	ours := render(t, values+`}}`)
	for _, id := range render(t, `{}`).ids() {
		delete(ours, id)
	}
	compare(t, ours, theirs)
}

func compare(t *testing.T, ours, theirs objects) {
	t.Helper()
	if diff := cmp.Diff(theirs.ids(), ours.ids()); diff != "" {
		t.Fatalf("objects (-config +chart):\n%s", diff)
	}
	for id := range ours {
		plain(ours[id])
		plain(theirs[id])
		if diff := cmp.Diff(theirs[id].Object, ours[id].Object); diff != "" {
			t.Errorf("%s (-config +chart):\n%s", id, diff)
		}
	}
}

// plain takes away what tells who installs an object.
func plain(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	for _, label := range []string{"app.kubernetes.io/managed-by", "app.kubernetes.io/instance", "app.kubernetes.io/name", "app.kubernetes.io/version", "helm.sh/chart"} {
		delete(labels, label)
	}
	if len(labels) == 0 {
		labels = nil
	}
	object.SetLabels(labels)
	annotations := object.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	object.SetAnnotations(annotations)
}

// kustomize builds a folder of config/.
func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", `"$(hack/tool kustomize)" build "config/$1"`, "build", folder)
	command.Dir = root
	text, err := command.Output()
	if err != nil {
		t.Fatalf("kustomize build config/%s: %v", folder, err)
	}
	out := objects{}
	if err := out.read(string(text)); err != nil {
		t.Fatal(err)
	}
	return out
}
