// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/mcpprobe"
	"github.com/espalier-dev/espalier/internal/podreport"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/prober"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// epoch is when everything in a test's world was created.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const podSecret = "s3cr3t-value"

// world is all that a pass over one MCPServer may see. A test changes it and
// asks for the status that a pass comes to.
type world struct {
	t      *testing.T
	server *mcpv1.MCPServer
	tools  []*mcpv1.MCPTool
	// others are registrations of other kinds, neighbours the MCPServers beside
	// web by name.
	others     []mcpv1.Registration
	neighbours map[string]*mcpv1.MCPServer
	pods       []*corev1.Pod
	refs       map[references.ID]references.State
	// targets of the prober by ID.
	targets    map[string]prober.TargetObservation
	lagging    bool
	deployment *appsv1.Deployment
	problems   []*problem
	memory     *serverMemory
	toolMemory *memory
	now        time.Time
	// requeue that the last pass asked for.
	requeue time.Duration
}

// newWorld has the server web with spec, two tools if it is of type Tools, and
// no pods. It is ten minutes old.
func newWorld(t *testing.T, spec string) *world {
	t.Helper()
	w := &world{
		t: t, targets: map[string]prober.TargetObservation{}, refs: map[references.ID]references.State{},
		now: epoch.Add(10 * time.Minute),
		server: &mcpv1.MCPServer{ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "ns", UID: "server", Generation: 1, CreationTimestamp: metav1.NewTime(epoch),
		}},
	}
	w.spec(spec)
	w.server.Generation = 1
	if w.server.Spec.Type == mcpv1.TypeTools {
		w.tool("alpha", `expression: {text: "'a'"}`)
		w.tool("beta", `expression: {text: "'b'"}`)
	}
	w.restart()
	return w
}

// spec replaces the server's spec, as an edit does.
func (w *world) spec(spec string) {
	w.t.Helper()
	w.server.Spec = mcpv1.MCPServerSpec{}
	if err := yaml.UnmarshalStrict([]byte(spec), &w.server.Spec); err != nil {
		w.t.Fatal(err)
	}
	if w.server.Spec.Type == "" {
		w.server.Spec.Type = mcpv1.TypeTools
	}
	w.server.Generation++
}

// tool adds an MCPTool, or edits the one of that name.
func (w *world) tool(name, spec string) *mcpv1.MCPTool {
	w.t.Helper()
	tool := &mcpv1.MCPTool{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: types.UID("tool-" + name), Generation: 1, CreationTimestamp: metav1.NewTime(epoch),
	}}
	if err := yaml.UnmarshalStrict([]byte(spec), &tool.Spec); err != nil {
		w.t.Fatal(err)
	}
	tool.Spec.ServerRefs = []mcpv1.ServerRef{{Name: "web"}}
	at := slices.IndexFunc(w.tools, func(t *mcpv1.MCPTool) bool { return t.Name == name })
	if at >= 0 {
		tool.Generation = w.tools[at].Generation + 1
		tool.Status = w.tools[at].Status
		w.tools[at] = tool
	} else {
		w.tools = append(w.tools, tool)
	}
	return tool
}

// other adds an MCPResource or MCPPrompt of the server.
func (w *world) other(r mcpv1.Registration) {
	r.SetNamespace("ns")
	r.SetUID(types.UID(fmt.Sprintf("%T-%s", r, r.GetName())))
	r.SetGeneration(1)
	r.SetCreationTimestamp(metav1.NewTime(epoch))
	r.GetRegistrationSpec().ServerRefs = []mcpv1.ServerRef{{Name: "web"}}
	w.others = append(w.others, r)
}

func (w *world) registrations() []mcpv1.Registration {
	var out []mcpv1.Registration
	for _, tool := range w.tools {
		out = append(out, tool)
	}
	return append(out, w.others...)
}

// restart makes the operator forget what is not in the API server.
func (w *world) restart() {
	w.toolMemory = newMemory()
	w.memory = w.toolMemory.server(types.NamespacedName{Namespace: "ns", Name: "web"})
	w.targets = map[string]prober.TargetObservation{}
}

// catalog that the server is to serve, and the set of it.
func (w *world) catalog() (*catalog.Catalog, *serverconfig.Set) {
	w.t.Helper()
	var compiled []*catalog.Compiled
	for _, r := range w.registrations() {
		compiled = append(compiled, catalog.Compile(r))
	}
	c := catalog.Build(w.server, compiled, serverconfig.ProbeTrust{Audience: "ns/web"})
	c.AddUpstreams(w.server, w.upstreams())
	set, err := serverconfig.Cut(c.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	return c, set
}

func (w *world) upstreams() []catalog.Upstream {
	return catalog.ResolveUpstreams(w.server, func(name string) *mcpv1.MCPServer { return w.neighbours[name] }, resources.URL)
}

// scope is one pass's view of the world.
func (w *world) scope() *serverScope {
	w.t.Helper()
	s := &serverScope{
		key: types.NamespacedName{Namespace: "ns", Name: "web"}, server: w.server, memory: w.memory, now: w.now,
		refs: w.refs, pods: w.pods, deployment: w.deployment, problems: slices.Clone(w.problems),
		children: map[childKey]client.Object{},
	}
	s.compiled = map[catalog.ID]*catalog.Compiled{}
	for _, r := range w.registrations() {
		s.registrations = append(s.registrations, r)
		s.compiled[catalog.IDOf(r)] = catalog.Compile(r)
	}
	if resources.Fronted(w.server) {
		s.catalog, s.set = w.catalog()
		s.upstreams = w.upstreams()
		s.memory.rendered(s.set.Digest, s.catalog, w.now)
	}
	if resources.HasPods(w.server) {
		s.children[childKey{"Service", "web-mcp"}] = resources.Service(w.server)
	}
	podstate.Sort(s.pods)
	s.observation = prober.Observation{Known: true, Lagging: w.lagging}
	for _, id := range sortedKeys(w.targets) {
		s.observation.Targets = append(s.observation.Targets, w.targets[id])
	}
	return s
}

// pass computes the status, writes it, and gives it back.
func (w *world) pass() mcpv1.MCPServerStatus {
	w.t.Helper()
	s := w.scope()
	status := serverStatus(s)
	if !equal(status, serverStatus(w.scope())) {
		w.t.Error("the same pass gave two statuses")
	}
	w.requeue = s.requeueAfter
	w.server = w.server.DeepCopy()
	w.server.Status = status
	checkConditions(w.t, status.Conditions, w.server.Generation)
	return status
}

// later lets time pass.
func (w *world) later(d time.Duration) { w.now = w.now.Add(d) }

// deploy renders the Deployment for what is wanted now and lets it be
// complete with the pods there are.
func (w *world) deploy() {
	w.t.Helper()
	if !resources.HasPods(w.server) {
		w.deployment = nil
		return
	}
	in := resources.TemplateInput{Server: w.server}
	if resources.Fronted(w.server) {
		c, _ := w.catalog()
		in.Refs = c.Refs
	}
	d, err := resources.Options{ServerImage: "server:1"}.Deployment(in, w.deployment)
	if err != nil {
		w.t.Fatal(err)
	}
	d.CreationTimestamp = metav1.NewTime(epoch)
	w.deployment = d
	w.complete()
}

// complete says that the Deployment has all its replicas.
func (w *world) complete() {
	n := resources.Replicas(w.server)
	w.deployment.Status = appsv1.DeploymentStatus{Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
}

// pod adds one that takes traffic, of the Deployment's template.
func (w *world) pod(name string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(epoch),
			Labels: map[string]string{mcpv1.LabelServer: "web", appsv1.DefaultDeploymentUniqueLabelKey: "hash1"},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "server", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
	if w.deployment != nil {
		pod.Spec.Volumes = w.deployment.Spec.Template.Spec.Volumes
	}
	setReady(pod, true)
	w.pods = append(w.pods, pod)
	return pod
}

func setReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}, {Type: corev1.ContainersReady, Status: status}}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready
	}
}

// serving brings n pods that are all proved with the wanted catalog.
func (w *world) serving(n int) {
	w.t.Helper()
	w.deploy()
	for i := range n {
		w.proved(w.pod(fmt.Sprintf("web-%d", i+1)))
	}
	w.complete()
}

// report of a server that was proved: the tools of the wanted catalog, or one
// of its own.
func (w *world) report() *mcpprobe.Report {
	r := &mcpprobe.Report{
		Outcome: mcpprobe.Proved, Step: mcpprobe.StepDone, HTTPStatus: 200, MediaType: "application/json", Era: mcpprobe.EraModern,
		ProtocolVersion: "2026-07-28", Server: mcpprobe.ServerInfo{Name: "web", Version: "0.0.0"}, Capabilities: []string{"tools"},
		Tools: mcpprobe.ToolList{State: mcpprobe.ToolsListed}, Latency: 3 * time.Millisecond,
	}
	zero := 0
	r.ResourceCount, r.PromptCount = &zero, &zero
	if !resources.Fronted(w.server) {
		r.Tools.Tools = []mcpprobe.Tool{{Name: "theirs", Digest: "v1:sha256:x"}}
		return r
	}
	c, set := w.catalog()
	lists := map[catalog.List]*mcpprobe.EntryList{catalog.Resources: &r.Resources, catalog.Templates: &r.Templates, catalog.Prompts: &r.Prompts}
	for _, list := range lists {
		list.Known = true
	}
	for _, id := range slices.SortedFunc(maps.Keys(c.Served), catalog.ID.Compare) {
		entry := c.Served[id]
		if list := lists[entry.List]; list != nil {
			list.Entries = append(list.Entries, mcpprobe.Entry{Name: mcpprobe.EscapeName(entry.Name()), Digest: entry.Wire.Digest})
		} else {
			r.Tools.Tools = append(r.Tools.Tools, mcpprobe.Tool{Name: entry.Name(), Digest: entry.Wire.Digest, Fields: entry.Wire.Fields})
		}
	}
	r.ResourceCount, r.PromptCount = r.Resources.Count(), r.Prompts.Count()
	r.Pod = &podreport.Report{Version: 1, CatalogDigest: set.Digest, CatalogState: podreport.CatalogLoaded}
	r.CatalogDigest, r.PodOutcome = set.Digest, mcpprobe.Proved
	return r
}

// proved says that the prober proved pod with the wanted catalog.
func (w *world) proved(pod *corev1.Pod) { w.observe(pod, prober.Proved, w.report()) }

// observe says what the prober knows of pod.
func (w *world) observe(pod *corev1.Pod, v prober.Verdict, r *mcpprobe.Report) {
	w.target(string(pod.UID), pod.Name, v, r)
}

func (w *world) target(id, name string, v prober.Verdict, r *mcpprobe.Report) {
	t := prober.TargetObservation{ID: id, Name: name, Verdict: v, Report: r, Latest: r, LastProbe: w.now, Since: epoch}
	if r != nil {
		t.Pod = r.Pod
		t.EverConnected = r.Outcome.Connected(r.Step)
	}
	w.targets[id] = t
}

// failing says that pod failed beyond the threshold.
func (w *world) failing(pod *corev1.Pod, outcome mcpprobe.Outcome, step mcpprobe.Step) {
	w.observe(pod, prober.Failing, &mcpprobe.Report{Outcome: outcome, Step: step})
}

// secret says that a Secret is there, with keys.
func (w *world) secret(name string, keys ...string) {
	digests := map[string]string{}
	for _, key := range keys {
		digests[key] = "digest of " + key
	}
	w.refs[references.ID{Kind: catalog.RefSecret, Namespace: "ns", Name: name}] = references.State{Found: true, Version: "1", Digests: digests}
}

// noSecret says that it is not.
func (w *world) noSecret(name string) {
	w.refs[references.ID{Kind: catalog.RefSecret, Namespace: "ns", Name: name}] = references.State{}
}

// condition of a status in one line: STATUS REASON, or "-".
func condition(conditions []metav1.Condition, t string) string {
	v, ok := held(conditions, t)
	if !ok {
		return "-"
	}
	return string(v.status) + " " + v.reason
}

// checkConditions holds what is true of every status that is ever written.
func checkConditions(t *testing.T, conditions []metav1.Condition, generation int64) {
	t.Helper()
	for _, c := range conditions {
		switch {
		case c.Reason == "" || c.Message == "":
			t.Errorf("%s has reason %q and message %q", c.Type, c.Reason, c.Message)
		case len(c.Message) > maxMessage+3:
			t.Errorf("%s has a message of %d bytes", c.Type, len(c.Message))
		case strings.ContainsAny(c.Message, "\n\r\t"):
			t.Errorf("%s has a message of several lines: %q", c.Type, c.Message)
		case strings.Contains(c.Message, podSecret):
			t.Errorf("%s tells a credential: %q", c.Type, c.Message)
		case c.ObservedGeneration != generation:
			t.Errorf("%s is of generation %d, want %d", c.Type, c.ObservedGeneration, generation)
		case (c.Type == mcpv1.ConditionReconciling || c.Type == mcpv1.ConditionStalled) && c.Status != metav1.ConditionTrue:
			t.Errorf("%s is %s; it is there only while it is True", c.Type, c.Status)
		}
	}
}

// refusedPods is what the Deployment says when its pods are refused.
func refusedPods(at time.Time) []appsv1.DeploymentCondition {
	return []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
		Message: "exceeded quota " + podSecret, LastTransitionTime: metav1.NewTime(at),
	}}
}

func keyOf(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}
