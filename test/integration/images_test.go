// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/controller"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/resources"
)

// imageFleet is a number of servers whose pods are played, with an operator
// that gives them an image.
type imageFleet struct {
	*world
	names []string
	// bad is an image that cannot be pulled.
	bad string
	// mirrors that the operator has images pulled from.
	mirrors resources.Mirrors
	// templates are the hashes of each server's pod templates so far.
	templates map[string]map[string]bool
}

const (
	fleetOfImages = 7
	// atOnce is --max-server-rollouts.
	atOnce = 3
)

// newImageFleet makes servers that all serve with image.
func newImageFleet(t *testing.T, image string, mirrors resources.Mirrors) *imageFleet {
	t.Helper()
	t.Parallel()
	f := &imageFleet{world: &world{T: t, ctx: context.Background(), access: api.Operator()}, templates: map[string]map[string]bool{}, mirrors: mirrors}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	must(t, api.Client.Create(f.ctx, namespace))
	f.namespace = namespace.Name
	f.start(image)
	for i := range fleetOfImages {
		f.add(fmt.Sprintf("s%d", i), `{}`)
	}
	f.playUntil("all serve", func() string { return f.unready(f.names...) })
	return f
}

func (f *imageFleet) add(name, spec string) {
	f.Helper()
	f.apply(fmt.Sprintf("{kind: MCPServer, metadata: {name: %s}, spec: %s}", name, spec))
	if !slices.Contains(f.names, name) {
		f.names = append(f.names, name)
	}
	f.eventually(soon, "Deployment of "+name, func() string {
		if f.exists(name+"-mcp", &appsv1.Deployment{}) {
			return ""
		}
		return "there is none"
	})
}

// start starts an operator that gives image, in place of the one before.
func (f *imageFleet) start(image string) {
	f.Helper()
	if f.operator != nil {
		f.stop()
	}
	f.operator = startOperator(f.T, f.access, f.namespace, func(r *controller.MCPServerReconciler) {
		r.Resources.ServerImage, r.MaxServerRollouts, r.Resources.Mirrors = image, atOnce, f.mirrors
	})
}

// settle lets the operator make whole passes over every server until they
// change no Deployment.
func (f *imageFleet) settle() {
	f.Helper()
	f.eventually(2*soon, "rest of the Deployments", func() string {
		before := f.images()
		for range 2 {
			for _, name := range f.names {
				f.passOver(name)
			}
		}
		if now := f.images(); fmt.Sprint(now) != fmt.Sprint(before) {
			return fmt.Sprintf("%v became %v", before, now)
		}
		return ""
	})
}

// deployments of the servers as they are at one moment.
func (f *imageFleet) deployments() []appsv1.Deployment {
	f.Helper()
	var list appsv1.DeploymentList
	must(f.T, api.Client.List(f.ctx, &list, client.InNamespace(f.namespace)))
	return list.Items
}

// images of the Deployments' templates, by server.
func (f *imageFleet) images() map[string]string {
	f.Helper()
	out := map[string]string{}
	for _, d := range f.deployments() {
		out[d.Labels[mcpv1.LabelServer]] = resources.ServerImage(&d.Spec.Template.Spec)
	}
	return out
}

// with lists the servers whose Deployment has image.
func (f *imageFleet) with(image string) []string {
	f.Helper()
	var out []string
	for name, has := range f.images() {
		if has == image {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// marked lists the servers that are being given an image.
func (f *imageFleet) marked() []string {
	f.Helper()
	var list corev1.ServiceList
	must(f.T, api.Client.List(f.ctx, &list, client.InNamespace(f.namespace), client.HasLabels{mcpv1.LabelRollout}))
	var out []string
	for _, service := range list.Items {
		out = append(out, service.Labels[mcpv1.LabelServer])
	}
	return out
}

// play does for one server what Deployment controller, kubelet and the server
// would do: pods of the present template come up, unless their image is bad,
// and then old ones go.
func (f *imageFleet) play(name string) {
	f.Helper()
	d := get(f.world, name+"-mcp", &appsv1.Deployment{})
	hash, want := resources.Hash(d.Spec.Template)[:10], int(*d.Spec.Replicas)
	var list corev1.PodList
	must(f.T, api.Client.List(f.ctx, &list, client.InNamespace(f.namespace), client.MatchingLabels{mcpv1.LabelServer: name}))
	var news, olds []corev1.Pod
	for _, pod := range list.Items {
		if pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			news = append(news, pod)
		} else {
			olds = append(olds, pod)
		}
	}
	if f.templates[name] == nil {
		f.templates[name] = map[string]bool{}
	}
	f.templates[name][hash] = true
	pulls := resources.ServerImage(&d.Spec.Template.Spec) != f.bad
	if len(news) < want {
		f.startPod(d, hash, len(list.Items)+1)
	}
	if !pulls {
		f.cannotPull(name, hash)
	} else {
		for _, pod := range olds {
			must(f.T, api.Client.Delete(f.ctx, &pod, client.GracePeriodSeconds(0)))
		}
	}
	before := d.DeepCopy()
	n := *d.Spec.Replicas
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	if !pulls {
		d.Status.Replicas++
	}
	must(f.T, api.Client.Status().Patch(f.ctx, d, client.MergeFrom(before)))
	f.answer(name)
}

// cannotPull makes the pods of a template wait for their image.
func (f *imageFleet) cannotPull(name, hash string) {
	f.Helper()
	var list corev1.PodList
	must(f.T, api.Client.List(f.ctx, &list, client.InNamespace(f.namespace), client.MatchingLabels{mcpv1.LabelServer: name, appsv1.DefaultDeploymentUniqueLabelKey: hash}))
	for _, pod := range list.Items {
		pod.Status.Phase = corev1.PodPending
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}, {Type: corev1.ContainersReady, Status: corev1.ConditionFalse}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", Image: f.bad, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		must(f.T, api.Client.Status().Update(f.ctx, &pod))
	}
}

// answer lets probes of the server's pods find what it should serve.
func (f *imageFleet) answer(name string) {
	f.Helper()
	report := f.listing()
	report.CatalogDigest, report.PodOutcome = get(f.world, name, &mcpv1.MCPServer{}).Status.CatalogDigest, mcpprobe.Proved
	report.Pod = &podreport.Report{Version: 1, CatalogDigest: report.CatalogDigest, CatalogState: podreport.CatalogLoaded}
	key := f.key(name)
	spec, _ := f.prober.spec(key)
	for _, target := range spec.Targets {
		f.prober.set(key, target.ID, prober.Proved, report)
	}
	f.prober.tell(key)
}

// playUntil plays every server until ok gives an empty string, and checks at
// each step what must always be so.
func (f *imageFleet) playUntil(what string, ok func() string) {
	f.Helper()
	f.eventually(3*soon, what, func() string {
		for _, name := range f.names {
			f.play(name)
			if marked := f.marked(); len(marked) > atOnce {
				f.Fatalf("%s: %v are given an image at once", what, marked)
			}
		}
		return ok()
	})
}

// unready names the first of the servers that is not proved, or is at work.
func (f *imageFleet) unready(names ...string) string {
	f.Helper()
	for _, name := range names {
		server := get(f.world, name, &mcpv1.MCPServer{})
		if wrong := differs(server.Status.Conditions, map[string]string{"Ready": "True Proved", "Reconciling": "-"}, server.Status.ObservedGeneration, server.Generation); wrong != "" {
			return name + ": " + wrong
		}
	}
	return ""
}

// expectReady expects Ready to be True on every server right now.
func (f *imageFleet) expectReady() {
	f.Helper()
	for _, name := range f.names {
		if got := condition(get(f.world, name, &mcpv1.MCPServer{}).Status.Conditions, "Ready"); got != "True Proved" {
			f.Errorf("%s: Ready is %s", name, got)
		}
	}
}

// TestServerImageInStages: two servers try a new image; once one of them was
// proved, as many as are allowed at once follow, through a restart of the
// operator; each rolls out once and Ready holds.
func TestServerImageInStages(t *testing.T) {
	f := newImageFleet(t, "server:1", nil)
	f.start("server:2")
	f.settle()
	first := f.with("server:2")
	if len(first) != 2 || len(f.marked()) != 2 {
		t.Fatalf("%v try the new image, marked are %v", first, f.marked())
	}
	f.expectReady()
	f.eventually(soon, "the next", func() string {
		f.play(first[0])
		if n := len(f.with("server:2")); n != 1+atOnce {
			return fmt.Sprintf("%d have the new image", n)
		}
		return f.unready(first[0])
	})
	for range 2 {
		f.start("server:2")
		f.settle()
		if n := len(f.with("server:2")); n != 1+atOnce {
			t.Errorf("after a restart %d have the new image, want %d", n, 1+atOnce)
		}
	}
	f.expectReady()
	// Edited while it waits: the edit comes, the image does not.
	waits := f.with("server:1")[0]
	f.add(waits, `{workload: {labels: {edited: "yes"}}}`)
	f.eventually(soon, "an edit", func() string {
		if get(f.world, waits+"-mcp", &appsv1.Deployment{}).Spec.Template.Labels["edited"] != "yes" {
			return "it is not applied"
		}
		return ""
	})
	f.play(waits)
	if !slices.Contains(f.with("server:1"), waits) {
		t.Error("the edit brought the new image before its turn")
	}
	// New ones, and those without pods, wait for nobody.
	f.add("new", `{}`)
	if !slices.Contains(f.with("server:2"), "new") {
		t.Error("a new server waits")
	}
	f.playUntil("all have it", func() string {
		if n := len(f.with("server:2")); n != len(f.names) {
			return fmt.Sprintf("%d have the new image", n)
		}
		if marked := f.marked(); len(marked) > 0 {
			return fmt.Sprintf("%v are still marked", marked)
		}
		return f.unready(f.names...)
	})
	for _, name := range f.names {
		want := map[string]int{waits: 3, "new": 1}[name]
		if want == 0 {
			want = 2
		}
		if n := len(f.templates[name]); n != want {
			t.Errorf("%s rolled out %d times, want %d", name, n-1, want-1)
		}
		if got := get(f.world, name, &mcpv1.MCPServer{}).Status.ServerImage; got != "server:2" {
			t.Errorf("status of %s tells %q", name, got)
		}
	}
}

// TestServerImageFromAMirror: pods have the image under its mirror's name, and
// that is no other image.
func TestServerImageFromAMirror(t *testing.T) {
	f := newImageFleet(t, "server:1", resources.Mirrors{"docker.io": "mirror.example.com"})
	f.start("server:1")
	f.settle()
	if marked := f.marked(); len(marked) > 0 {
		t.Errorf("%v are given an image that they have", marked)
	}
	f.start("server:2")
	f.settle()
	if n := len(f.with("mirror.example.com/library/server:2")); n != 2 {
		t.Errorf("%d try the new image", n)
	}
	f.playUntil("all have it", func() string {
		if n := len(f.with("mirror.example.com/library/server:2")); n != len(f.names) {
			return fmt.Sprintf("%d have the new image", n)
		}
		if marked := f.marked(); len(marked) > 0 {
			return fmt.Sprintf("%v are still marked", marked)
		}
		return f.unready(f.names...)
	})
}

// TestBadServerImage: it reaches two servers, whose old pods serve on, and no
// third, whoever restarts; a good one heals them.
func TestBadServerImage(t *testing.T) {
	f := newImageFleet(t, "server:1", nil)
	f.bad = "server:bad"
	f.add("idle", `{replicas: 0}`)
	f.start(f.bad)
	failed := func() string {
		n := 0
		for _, name := range f.with(f.bad) {
			if got := condition(get(f.world, name, &mcpv1.MCPServer{}).Status.Conditions, "Reconciling"); got == "True ImagePullFailed" {
				n++
			}
		}
		return equalTo(int32(n), 2)
	}
	f.playUntil("two failures", failed)
	for range 2 {
		f.settle()
		if with := f.with(f.bad); len(with) != 3 || !slices.Contains(with, "idle") {
			t.Errorf("%v have the bad image", with)
		}
		for _, name := range f.names {
			if name != "idle" && condition(get(f.world, name, &mcpv1.MCPServer{}).Status.Conditions, "Ready") != "True Proved" {
				t.Errorf("%s is not Ready any more", name)
			}
		}
		f.start(f.bad)
	}
	f.playUntil("two failures", failed)
	if with := f.with(f.bad); len(with) != 3 {
		t.Errorf("%v have the bad image after a restart", with)
	}
	f.start("server:3")
	f.playUntil("all have the good one", func() string {
		if n := len(f.with("server:3")); n != len(f.names) {
			return fmt.Sprintf("%d have the new image", n)
		}
		if marked := f.marked(); len(marked) > 0 {
			return fmt.Sprintf("%v are still marked", marked)
		}
		return f.unready(f.names[:fleetOfImages]...)
	})
	if d := get(f.world, "idle-mcp", &appsv1.Deployment{}); *d.Spec.Replicas != 0 {
		t.Errorf("a server without pods has %d", *d.Spec.Replicas)
	}
}
