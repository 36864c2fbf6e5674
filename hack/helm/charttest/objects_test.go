// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/labels"
)

// TestCRDs: they are there, kept and left out as asked for. That they equal
// config/crd, TestEqualsKustomize says.
func TestCRDs(t *testing.T) {
	for values, want := range map[string]struct{ crds, kept int }{
		`{}`:                       {4, 4},
		`{crds: {keep: false}}`:    {4, 0},
		`{crds: {enabled: false}}`: {0, 0},
	} {
		crds, kept := 0, 0
		for _, object := range render(t, values) {
			if object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			crds++
			if object.GetAnnotations()["helm.sh/resource-policy"] == "keep" {
				kept++
			}
		}
		if crds != want.crds || kept != want.kept {
			t.Errorf("%s: %d CRDs, %d of them kept; want %+v", values, crds, kept, want)
		}
	}
}

func TestImages(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	for values, want := range map[string][2]string{
		`{}`:                                {"ghcr.io/espalier-dev/manager:dev", "ghcr.io/espalier-dev/server:dev"},
		`{image: {tag: v1}}`:                {"ghcr.io/espalier-dev/manager:v1", "ghcr.io/espalier-dev/server:v1"},
		`{image: {registry: r.example/a/}}`: {"r.example/a/manager:dev", "r.example/a/server:dev"},
		`{image: {tag: v1}, servers: {image: {repository: mcp, tag: v0}}}`:            {"ghcr.io/espalier-dev/manager:v1", "ghcr.io/espalier-dev/mcp:v0"},
		`{manager: {image: {tag: v2}}, servers: {image: {digest: "` + digest + `"}}}`: {"ghcr.io/espalier-dev/manager:v2", "ghcr.io/espalier-dev/server:dev@" + digest},
	} {
		o := render(t, values)
		got := [2]string{container(t, o)["image"].(string)}
		for _, arg := range args(t, o) {
			if image, ok := strings.CutPrefix(arg, "--server-image="); ok {
				got[1] = image
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", values, got, want)
		}
	}
}

// TestRunAsUser: a user of OpenShift's size is a number, not 1.00065e+09.
func TestRunAsUser(t *testing.T) {
	for values, want := range map[string]string{
		`{servers: {runAsUser: 1000650000}}`: "--run-as-user=1000650000",
		`{servers: {runAsUser: "1000"}}`:     "--run-as-user=1000",
		`{servers: {runAsUser: ""}}`:         "--run-as-user=",
	} {
		if got := args(t, render(t, values)); !slices.Contains(got, want) {
			t.Errorf("%s: %q lack %s", values, got, want)
		}
	}
	security := `{manager: {podSecurityContext: {runAsUser: null, runAsGroup: null}}}`
	want := map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	if diff := cmp.Diff(want, field(t, render(t, security).get(t, manager), "spec", "template", "spec", "securityContext")); diff != "" {
		t.Errorf("%s:\n%s", security, diff)
	}
}

// TestSelectors: whatever selects the operator's pods selects them, under any
// names and labels, and a Deployment's selector is the same in each.
func TestSelectors(t *testing.T) {
	values := `{commonLabels: {team: platform}, manager: {podLabels: {tier: control}}, metrics: {serviceMonitor: {enabled: true}}}`
	for _, options := range []common.ReleaseOptions{release, {Name: "mcp", Namespace: "tools"}, {Name: strings.Repeat("long", 13), Namespace: "n"}} {
		o, err := tryRender(t, options, values)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, id := range o.ids() {
			object := o[id]
			if len(object.GetName()) > 63 {
				t.Errorf("the name of %s is too long", id)
			}
			path := map[string][]string{
				"Deployment":          {"spec", "selector", "matchLabels"},
				"PodDisruptionBudget": {"spec", "selector", "matchLabels"},
				"NetworkPolicy":       {"spec", "podSelector", "matchLabels"},
				"Service":             {"spec", "selector"},
				"ServiceMonitor":      {"spec", "selector", "matchLabels"},
			}[object.GetKind()]
			if path == nil {
				continue
			}
			found++
			want := map[string]any{"app.kubernetes.io/name": "espalier", "control-plane": "controller-manager"}
			if diff := cmp.Diff(want, field(t, object, path...)); diff != "" {
				t.Errorf("%s selects:\n%s", id, diff)
			}
			selects := labels.Set{"app.kubernetes.io/name": "espalier", "control-plane": "controller-manager"}.AsSelector()
			switch object.GetKind() {
			case "Deployment":
				pod := labels.Set{}
				for name, value := range field(t, object, "spec", "template", "metadata", "labels").(map[string]any) {
					pod[name] = value.(string)
				}
				if !selects.Matches(pod) || pod["team"] != "platform" || pod["tier"] != "control" {
					t.Errorf("%s makes pods with %v", id, pod)
				}
			case "Service":
				if !selects.Matches(labels.Set(object.GetLabels())) {
					t.Errorf("the ServiceMonitor does not select %s: %v", id, object.GetLabels())
				}
			}
		}
		if found != 5 {
			t.Errorf("%s: %d objects select pods", options.Name, found)
		}
	}
}

// TestNames of releases.
func TestNames(t *testing.T) {
	for values, names := range map[string]map[string]string{
		`{}`:                        {"espalier": "espalier-manager", "my-espalier": "my-espalier-manager", "mcp": "mcp-espalier-manager"},
		`{nameOverride: tools}`:     {"espalier": "espalier-tools-manager", "tools": "tools-manager"},
		`{fullnameOverride: front}`: {"espalier": "front-manager"},
	} {
		for name, want := range names {
			o, err := tryRender(t, common.ReleaseOptions{Name: name, Namespace: "tools"}, values)
			if err != nil {
				t.Fatal(err)
			}
			account := o.get(t, "Deployment tools/"+want).Object["spec"]
			if o["ServiceAccount tools/"+want] == nil || account == nil {
				t.Errorf("%s as %s: %q", values, name, o.ids())
			}
		}
	}
	account := field(t, render(t, `{serviceAccount: {create: false}}`).get(t, manager), "spec", "template", "spec", "serviceAccountName")
	if account != "default" {
		t.Errorf("without a ServiceAccount the pods run as %v", account)
	}
}
