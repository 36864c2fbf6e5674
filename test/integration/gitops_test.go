// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/test/apiserver"
)

// exampleNamespace is the one that the examples name.
const exampleNamespace = "espalier-demo"

// exampleManifests are all examples as one stream of YAML.
func exampleManifests(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob(apiserver.Path("examples", "*", "*.yaml"))
	must(t, err)
	var all []string
	for _, file := range append([]string{apiserver.Path("examples", "namespace.yaml")}, files...) {
		raw, err := os.ReadFile(file)
		must(t, err)
		if strings.Contains(string(raw), "\napiVersion: gateway.networking.k8s.io/") {
			continue // The server has no such kinds; test/api applies it.
		}
		all = append(all, string(raw))
	}
	return strings.Join(all, "\n---\n")
}

// TestGitOpsDiff: kubectl diff is empty for all examples, however they were
// applied, before and after the operator has acted upon them.
func TestGitOpsDiff(t *testing.T) {
	t.Parallel()
	w := &world{T: t, ctx: context.Background(), access: api.Operator(), namespace: exampleNamespace}
	manifests := exampleManifests(t)
	kubectl := func(args ...string) {
		t.Helper()
		if out, err := api.Kubectl(w.ctx, t, manifests, append(args, "--filename=-")...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
	kubectl("apply")
	kubectl("diff")
	specs := w.specs()
	w.operator = startOperator(t, w.access, w.namespace)
	w.observed()
	kubectl("diff")
	kubectl("apply", "--server-side", "--force-conflicts")
	w.observed()
	kubectl("diff", "--server-side")
	if diff := cmp.Diff(specs, w.specs()); diff != "" {
		t.Errorf("specs changed:\n%s", diff)
	}
}

// ourKinds are those that users write.
var ourKinds = []string{"MCPServer", "MCPTool", "MCPResource", "MCPPrompt"}

// ours lists the objects of our kinds in the namespace.
func (w *world) ours() []unstructured.Unstructured {
	w.Helper()
	var out []unstructured.Unstructured
	for _, kind := range ourKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(mcpv1.GroupVersion.WithKind(kind + "List"))
		must(w.T, api.Client.List(w.ctx, list, client.InNamespace(w.namespace)))
		out = append(out, list.Items...)
	}
	return out
}

// specs of our kinds with their labels and annotations, by kind and name.
func (w *world) specs() map[string]any {
	w.Helper()
	out := map[string]any{}
	for _, obj := range w.ours() {
		annotations := obj.GetAnnotations()
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		out[obj.GetKind()+" "+obj.GetName()] = []any{obj.Object["spec"], obj.GetLabels(), annotations, obj.GetGeneration()}
	}
	return out
}

// observed waits until each object's present version was judged and the
// operator writes nothing more.
func (w *world) observed() {
	w.Helper()
	before := -1
	w.eventually(2*soon, "a judgement of each object", func() string {
		for _, obj := range w.ours() {
			if n, _, _ := unstructured.NestedInt64(obj.Object, "status", "observedGeneration"); n != obj.GetGeneration() {
				return fmt.Sprintf("%s %s is at %d of %d", obj.GetKind(), obj.GetName(), n, obj.GetGeneration())
			}
		}
		now := len(w.writes.all())
		if now != before {
			before = now
			return "the operator writes"
		}
		return ""
	})
}

// marks are what GitOps tools and Helm put on objects, and a user's own label.
var marks = struct{ labels, annotations map[string]string }{
	labels: map[string]string{
		"app.kubernetes.io/instance": "team-apps", "app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/part-of": "team-apps",
		"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		"helm.toolkit.fluxcd.io/name": "apps", "argocd.argoproj.io/instance": "team-apps", "cost-center": "42",
	},
	annotations: map[string]string{
		"argocd.argoproj.io/tracking-id": "team-apps:mcp.espalier.dev/MCPServer:team-a/web", "argocd.argoproj.io/sync-wave": "3",
		"meta.helm.sh/release-name": "apps", corev1.LastAppliedConfigAnnotation: "{}",
	},
}

// TestGitOpsMarks: no child and no pod carries what the tools put on the
// server and its tools (C08).
func TestGitOpsMarks(t *testing.T) {
	w := newWorld(t)
	w.server(`{replicas: 2, workload: {labels: {cost-center: declared}}}`)
	w.tool("alpha", `expression: {text: "'a'"}`)
	for _, obj := range []client.Object{w.web(), get(w, "alpha", &mcpv1.MCPTool{})} {
		before, ok := obj.DeepCopyObject().(client.Object)
		if !ok {
			t.Fatalf("%T is no object", obj)
		}
		obj.SetLabels(marks.labels)
		obj.SetAnnotations(marks.annotations)
		must(t, api.Client.Patch(w.ctx, obj, client.MergeFrom(before)))
	}
	w.serve()
	w.rest()
	all := w.children()
	for _, pod := range w.pods() {
		all = append(all, &pod)
	}
	if len(all) != 7 {
		t.Fatalf("%d children and pods", len(all))
	}
	for _, child := range all {
		for key, value := range marks.labels {
			if child.GetLabels()[key] == value {
				t.Errorf("%T %s took label %s", child, child.GetName(), key)
			}
		}
		for key := range marks.annotations {
			if _, ok := child.GetAnnotations()[key]; ok {
				t.Errorf("%T %s took annotation %s", child, child.GetName(), key)
			}
		}
		owners := child.GetOwnerReferences()
		if _, pod := child.(*corev1.Pod); !pod && (len(owners) != 1 || metav1.GetControllerOf(child).UID != w.web().UID) {
			t.Errorf("%T %s has owners %v", child, child.GetName(), owners)
		}
	}
	for _, pod := range w.pods() {
		if pod.Labels["cost-center"] != "declared" {
			t.Errorf("a pod lacks the label that spec.workload declares: %v", pod.Labels)
		}
	}
}

// TestGitOpsReplicas: what an autoscaler set stays when a manifest without
// replicas is applied again, in either way.
func TestGitOpsReplicas(t *testing.T) {
	for _, mode := range []string{"--server-side=false", "--server-side=true"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			manifest := fmt.Sprintf("{apiVersion: mcp.espalier.dev/v1alpha1, kind: MCPServer, metadata: {name: web, namespace: %s}, spec: {}}", w.namespace)
			apply := func(verb string) {
				t.Helper()
				if out, err := api.Kubectl(w.ctx, t, manifest, verb, mode, "--filename=-"); err != nil {
					t.Fatalf("kubectl %s: %v\n%s", verb, err, out)
				}
			}
			apply("apply")
			must(t, api.Client.SubResource("scale").Patch(w.ctx, w.web(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":4}}`))))
			scaled := w.web()
			apply("apply")
			apply("diff")
			if now := w.web(); *now.Spec.Replicas != 4 || now.Generation != scaled.Generation {
				t.Errorf("%d replicas, generation %d before and %d after", *now.Spec.Replicas, scaled.Generation, now.Generation)
			}
		})
	}
}

// TestGitOpsOrder: the objects of a wave come in any order, and the end is the
// same.
func TestGitOpsOrder(t *testing.T) {
	wave := []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: late}, stringData: {token: t}}`,
		`{kind: MCPServer, metadata: {name: web}, spec: {workload: {env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: late, key: token}}}]}}}`,
		`{kind: MCPTool, metadata: {name: alpha}, spec: {serverRefs: [{name: web}], expression: {text: "'a'"}}}`,
		`{kind: MCPTool, metadata: {name: beta}, spec: {serverRefs: [{name: web}], http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: late, key: token}}]}}}`,
		`{kind: MCPResource, metadata: {name: doc}, spec: {serverRefs: [{name: web}], uri: "docs://a", text: a}}`,
		`{kind: MCPServer, metadata: {name: front}, spec: {upstreams: [{name: web, serverRef: {name: web}}]}}`,
	}
	orders := [][]int{{0, 1, 2, 3, 4, 5}, {5, 4, 3, 2, 1, 0}, {3, 2, 1, 0, 5, 4}, {1, 5, 3, 0, 4, 2}, {4, 5, 0, 2, 1, 3}}
	for _, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := newWorld(t)
			for _, i := range order {
				w.apply(wave[i])
				if slices.Contains([]int{1, 5}, i) {
					w.eventually(soon, "a first pass", func() string {
						for _, server := range w.ours() {
							if n, _, _ := unstructured.NestedInt64(server.Object, "status", "observedGeneration"); server.GetKind() == "MCPServer" && n < 1 {
								return server.GetName() + " was not looked at"
							}
						}
						return ""
					})
				}
			}
			w.serve()
			w.becomes(map[string]string{"ResolvedRefs": "True ResolvedRefs", "Reconciling": "-", "Stalled": "-"})
			w.toolBecomes("alpha", isServed)
			w.toolBecomes("beta", isServed)
			w.registrationBecomes("doc", &mcpv1.MCPResource{}, isServed)
			w.eventually(soon, "the front", func() string {
				front := get(w, "front", &mcpv1.MCPServer{})
				return differs(front.Status.Conditions, map[string]string{"Accepted": "True Accepted", "ResolvedRefs": "True ResolvedRefs", "Stalled": "-"}, front.Status.ObservedGeneration, front.Generation)
			})
		})
	}
}
