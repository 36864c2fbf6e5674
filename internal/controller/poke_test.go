// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// poker pokes pods and notes the annotation that each was given, by pod.
type poker struct {
	*MCPServerReconciler
	annotations map[string][]string
	types       []types.PatchType
	fail        error
}

func newPoker(t *testing.T) *poker {
	t.Helper()
	p := &poker{annotations: map[string][]string{}}
	patched := func(_ context.Context, _ client.Client, sub string, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
		if p.fail != nil {
			return p.fail
		}
		raw, err := patch.Data(obj)
		if err != nil {
			return err
		}
		var body struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Status   json.RawMessage   `json:"status"`
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			return err
		}
		if sub != "status" {
			t.Errorf("%s was patched through %q", obj.GetName(), sub)
		}
		p.types = append(p.types, patch.Type())
		value := body.Metadata.Annotations[mcpv1.AnnotationCatalog] + string(body.Status)
		p.annotations[obj.GetName()] = append(p.annotations[obj.GetName()], value)
		return nil
	}
	c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{SubResourcePatch: patched})
	p.MCPServerReconciler = &MCPServerReconciler{Client: c, metrics: newMetrics(nil)}
	return p
}

// poke makes the phase, with the catalog's ConfigMap in the cache, and gives
// when it wants to be called again.
func (p *poker) poke(t *testing.T, w *world) time.Duration {
	t.Helper()
	s := w.scope()
	for _, cm := range resources.CatalogConfigMaps(w.server, s.set) {
		s.children[childKey{"ConfigMap", cm.Name}] = cm
	}
	if err := p.pokePods(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	// What the API server would now show.
	for _, pod := range w.pods {
		if values := p.annotations[pod.Name]; len(values) > 0 {
			pod.Annotations = map[string]string{mcpv1.AnnotationCatalog: values[len(values)-1]}
		}
	}
	return s.requeueAfter
}

// TestPokes: a pod that reports another catalog is poked at once and again
// after 1, 2, 4 and 8 s until it reports the wanted one; its neighbour that
// has it is left alone.
func TestPokes(t *testing.T) {
	w, p := newWorld(t, `replicas: 2`), newPoker(t)
	w.serving(2)
	if again := p.poke(t, w); again != 0 || len(p.annotations) != 0 {
		t.Errorf("pods at rest were poked: %v", p.annotations)
	}
	w.tool("alpha", `expression: {text: "'new'"}`)
	w.proved(w.pods[1])
	headStart(t, w, p)
	_, set := w.catalog()
	short := strings.TrimPrefix(set.Digest, "sha256:")[:16]
	for n, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 30 * time.Second, 30 * time.Second} {
		if again := p.poke(t, w); again != wait {
			t.Errorf("after poke %d the next is in %s, want %s", n+1, again, wait)
		}
		want := fmt.Sprintf("%s-%d", short, n+1)
		if got := p.annotations["web-1"]; len(got) != n+1 || got[n] != want {
			t.Fatalf("poke %d: %v, want %s", n+1, got, want)
		}
		// A wake-up in between changes nothing.
		w.later(wait / 2)
		if again := p.poke(t, w); again != wait/2 || len(p.annotations["web-1"]) != n+1 {
			t.Errorf("half way the next is in %s, with %d pokes", again, len(p.annotations["web-1"]))
		}
		w.later(wait / 2)
	}
	if len(p.annotations["web-2"]) != 0 {
		t.Errorf("a pod that has the catalog was poked: %v", p.annotations["web-2"])
	}
	w.proved(w.pods[0])
	before := len(p.annotations["web-1"])
	if again := p.poke(t, w); again != 0 || len(p.annotations["web-1"]) != before {
		t.Errorf("reported, and still poked: again in %s", again)
	}
	// The next catalog begins at once, and the number goes on.
	w.tool("alpha", `expression: {text: "'newer'"}`)
	headStart(t, w, p)
	if again := p.poke(t, w); again != time.Second {
		t.Errorf("the next catalog: again in %s", again)
	}
	last := p.annotations["web-1"][before]
	if strings.HasPrefix(last, short) || !strings.HasSuffix(last, fmt.Sprintf("-%d", before+1)) {
		t.Errorf("the next catalog's poke is %s", last)
	}
	for _, kind := range p.types {
		if kind != types.MergePatchType {
			t.Errorf("patched as %s", kind)
		}
	}
}

// headStart: the kubelet's watch is given time before the first poke.
func headStart(t *testing.T, w *world, p *poker) {
	t.Helper()
	before := len(p.annotations["web-1"])
	if again := p.poke(t, w); again != pokeHeadStart || len(p.annotations["web-1"]) != before {
		t.Errorf("the first poke is in %s, want %s", again, pokeHeadStart)
	}
	w.later(pokeHeadStart)
}

// TestPokesWait: no poke before the catalog has reached the operator's own
// cache, nor for a pod that has not reported, has no address, or goes.
func TestPokesWait(t *testing.T) {
	tests := map[string]func(*world){
		"not reported": func(w *world) { w.targets = map[string]prober.TargetObservation{} },
		"no address":   func(w *world) { w.pods[0].Status.PodIP = "" },
		"ends":         func(w *world) { w.pods[0].DeletionTimestamp = &metav1.Time{Time: w.now} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(t, `{}`), newPoker(t)
			w.serving(1)
			w.tool("alpha", `expression: {text: "'new'"}`)
			change(w)
			p.poke(t, w)
			w.later(pokeHeadStart)
			p.poke(t, w)
			if len(p.annotations) != 0 {
				t.Errorf("poked: %v", p.annotations)
			}
		})
	}
	w, p := newWorld(t, `{}`), newPoker(t)
	w.serving(1)
	s := w.scope()
	for _, cm := range resources.CatalogConfigMaps(w.server, s.set) {
		s.children[childKey{"ConfigMap", cm.Name}] = cm
	}
	w.tool("alpha", `expression: {text: "'new'"}`)
	for range 2 {
		late := w.scope()
		late.children = s.children
		if err := p.pokePods(t.Context(), late); err != nil || len(p.annotations) != 0 {
			t.Errorf("poked before the catalog was there: %v, %v", p.annotations, err)
		}
		w.later(time.Minute)
	}
}

// TestRotationPokes: a mounted Secret that changed pokes all pods, once; one
// that is merely named anew does not.
func TestRotationPokes(t *testing.T) {
	w, p := newWorld(t, `replicas: 2`), newPoker(t)
	w.secret("s", "k", "other")
	w.tool("alpha", `http: {method: GET, url: "http://api", headers: [{name: A, secretKeyRef: {name: s, key: k}}]}`)
	w.serving(2)
	p.poke(t, w)
	if len(p.annotations) != 0 {
		t.Errorf("the first sight of a Secret poked: %v", p.annotations)
	}
	id := sortedRefs(w)[0]
	state := w.refs[id]
	state.Version = "2"
	state.Digests = map[string]string{"k": state.Digests["k"], "other": "changed"}
	w.refs[id] = state
	p.poke(t, w)
	if len(p.annotations) != 0 {
		t.Errorf("a key that nobody names poked: %v", p.annotations)
	}
	state.Digests = map[string]string{"k": "changed"}
	w.refs[id] = state
	p.poke(t, w)
	p.poke(t, w)
	for _, pod := range []string{"web-1", "web-2"} {
		if len(p.annotations[pod]) != 1 {
			t.Errorf("%s was poked %d times", pod, len(p.annotations[pod]))
		}
	}
}

// TestPokeIsForbidden: that is told, with verb and resource.
func TestPokeIsForbidden(t *testing.T) {
	w, p := newWorld(t, `{}`), newPoker(t)
	w.serving(1)
	w.tool("alpha", `expression: {text: "'new'"}`)
	p.fail = apierrors.NewForbidden(schema.GroupResource{Resource: "pods/status"}, "web-1", errors.New("no"))
	s := w.scope()
	for _, cm := range resources.CatalogConfigMaps(w.server, s.set) {
		s.children[childKey{"ConfigMap", cm.Name}] = cm
	}
	if err := p.pokePods(t.Context(), s); err != nil {
		t.Errorf("before the head start is over: %v", err)
	}
	s.now = s.now.Add(pokeHeadStart)
	known := asProblem(p.pokePods(t.Context(), s))
	if known == nil || known.reason != mcpv1.ReasonForbidden || !strings.Contains(known.message, "patch pods/status") {
		t.Errorf("problem %+v", known)
	}
	p.fail = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "web-1")
	if err := p.pokePods(t.Context(), w.scope()); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}

// TestGates: a gate is opened once per pod, when it was proved.
func TestGates(t *testing.T) {
	w, p := newWorld(t, containerSpec), newPoker(t)
	w.deploy()
	gate := corev1.PodReadinessGate{ConditionType: resources.GateProved}
	for _, name := range []string{"proved", "pending", "failing", "open", "ungated"} {
		pod := w.pod(name)
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{gate}
		w.observe(pod, prober.Proved, w.report())
		switch name {
		case "pending":
			w.observe(pod, prober.Pending, nil)
		case "failing":
			w.failing(pod, "Timeout", "initialize")
		case "open":
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: resources.GateProved, Status: corev1.ConditionTrue})
		case "ungated":
			pod.Spec.ReadinessGates = nil
		}
	}
	if err := p.openGates(t.Context(), w.scope()); err != nil {
		t.Fatal(err)
	}
	var opened []string
	for name := range p.annotations {
		opened = append(opened, name)
	}
	if diff := cmp.Diff([]string{"proved"}, opened); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if body := p.annotations["proved"][0]; !strings.Contains(body, `"type":"mcp.espalier.dev/proved"`) || !strings.Contains(body, `"status":"True"`) {
		t.Errorf("patch %s", body)
	}
}
