// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/version"
)

// gatherer reads facts of servers of one namespace. What the user may not read
// is noted, and the walk goes on without it.
type gatherer struct {
	client    client.Client
	clientset kubernetes.Interface
	namespace string
	state     operator.State
	// logLines of a troubled pod are read; 0 is none.
	logLines int64

	servers       map[string]*mcpv1.MCPServer
	registrations []mcpv1.Registration
	events        []corev1.Event
	unread        map[string]string
}

// read lists what is shared by all servers of the namespace.
func (g *gatherer) read(ctx context.Context) error {
	g.unread = map[string]string{}
	var servers mcpv1.MCPServerList
	if err := g.client.List(ctx, &servers, client.InNamespace(g.namespace)); err != nil {
		return env.ClusterError(err)
	}
	g.servers = map[string]*mcpv1.MCPServer{}
	for i := range servers.Items {
		g.servers[servers.Items[i].Name] = &servers.Items[i]
	}
	var tools mcpv1.MCPToolList
	if err := g.list(ctx, "mcptools", &tools); err != nil {
		return err
	}
	for i := range tools.Items {
		g.registrations = append(g.registrations, &tools.Items[i])
	}
	var resourceList mcpv1.MCPResourceList
	if err := g.list(ctx, "mcpresources", &resourceList); err != nil {
		return err
	}
	for i := range resourceList.Items {
		g.registrations = append(g.registrations, &resourceList.Items[i])
	}
	var prompts mcpv1.MCPPromptList
	if err := g.list(ctx, "mcpprompts", &prompts); err != nil {
		return err
	}
	for i := range prompts.Items {
		g.registrations = append(g.registrations, &prompts.Items[i])
	}
	slices.SortFunc(g.registrations, func(a, b mcpv1.Registration) int { return catalog.IDOf(a).Compare(catalog.IDOf(b)) })
	var events corev1.EventList
	if err := g.list(ctx, "events", &events, client.MatchingFields{"type": corev1.EventTypeWarning}); err != nil {
		return err
	}
	g.events = events.Items
	return nil
}

// list reads a list of the namespace; that it is forbidden is noted.
func (g *gatherer) list(ctx context.Context, resource string, list client.ObjectList, options ...client.ListOption) error {
	return g.noted(resource, g.client.List(ctx, list, append(options, client.InNamespace(g.namespace))...))
}

func (g *gatherer) noted(resource string, err error) error {
	if apierrors.IsForbidden(err) {
		g.unread[resource] = "you may not read them"
		return nil
	}
	return env.ClusterError(err)
}

// server gathers the facts of one server that exists.
func (g *gatherer) server(ctx context.Context, server *mcpv1.MCPServer) (*Facts, error) {
	f := &Facts{
		Server: server, Life: g.state.Of(g.namespace), Now: g.state.Now, Servers: g.servers,
		Named: map[NamedID]Named{}, Logs: map[string][]string{}, Unread: g.unread,
	}
	f.Skew = operator.Skew(version.Version, g.state.Versions[f.Life.Namespace])
	for _, r := range g.registrations {
		if r.GetDeletionTimestamp() == nil && catalog.Selects(r, server) {
			f.Registrations = append(f.Registrations, r)
		}
	}
	if err := g.named(ctx, f); err != nil {
		return nil, err
	}
	if !resources.HasPods(server) {
		return f, nil
	}
	if err := g.workload(ctx, f); err != nil {
		return nil, err
	}
	f.Events = eventsOf(g.events, f)
	g.logs(ctx, f)
	return f, nil
}

// named reads which Secrets and ConfigMaps there are, and their keys.
func (g *gatherer) named(ctx context.Context, f *Facts) error {
	for _, ref := range f.refs() {
		id := NamedID{ref.Kind, ref.Name}
		if _, read := f.Named[id]; read {
			continue
		}
		key := types.NamespacedName{Namespace: g.namespace, Name: ref.Name}
		var named Named
		var err error
		resource := "configmaps"
		if ref.Kind == catalog.RefSecret {
			resource = "secrets"
			var secret corev1.Secret
			err = g.client.Get(ctx, key, &secret)
			named.Keys = slices.Sorted(maps.Keys(secret.Data))
		} else {
			var cm corev1.ConfigMap
			err = g.client.Get(ctx, key, &cm)
			named.Keys = slices.Concat(slices.Sorted(maps.Keys(cm.Data)), slices.Sorted(maps.Keys(cm.BinaryData)))
		}
		named.Found = err == nil
		if apierrors.IsForbidden(err) {
			named.Unread = true
		}
		if !apierrors.IsNotFound(err) {
			if err := g.noted(resource, err); err != nil {
				return err
			}
		}
		f.Named[id] = named
	}
	return nil
}

// workload reads the Deployment, its ReplicaSets and pods.
func (g *gatherer) workload(ctx context.Context, f *Facts) error {
	var deployment appsv1.Deployment
	err := g.client.Get(ctx, types.NamespacedName{Namespace: g.namespace, Name: resources.Name(f.Server)}, &deployment)
	switch {
	case err == nil && deployment.Labels[mcpv1.LabelServer] == f.Server.Name:
		f.Deployment = &deployment
	case err == nil, apierrors.IsNotFound(err):
	default:
		if err := g.noted("deployments", err); err != nil {
			return err
		}
	}
	ofServer := client.MatchingLabels(resources.Selector(f.Server))
	var sets appsv1.ReplicaSetList
	if err := g.list(ctx, "replicasets", &sets, ofServer); err != nil {
		return err
	}
	f.ReplicaSets = sets.Items
	var pods corev1.PodList
	if err := g.list(ctx, "pods", &pods, ofServer); err != nil {
		return err
	}
	for i := range pods.Items {
		f.Pods = append(f.Pods, &pods.Items[i])
	}
	podstate.Sort(f.Pods)
	return nil
}

// eventsOf are the warnings about the server's own objects, the newest first.
func eventsOf(events []corev1.Event, f *Facts) []Event {
	on := map[string]bool{"Deployment/" + resources.Name(f.Server): true, "MCPServer/" + f.Server.Name: true}
	for i := range f.ReplicaSets {
		on["ReplicaSet/"+f.ReplicaSets[i].Name] = true
	}
	for _, pod := range f.Pods {
		on["Pod/"+pod.Name] = true
	}
	var out []Event
	for i := range events {
		e := &events[i]
		name := e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name
		if !on[name] {
			continue
		}
		event := Event{On: name, Reason: e.Reason, Message: e.Message, Count: max(e.Count, 1), Last: e.LastTimestamp.Time}
		if e.Series != nil {
			event.Count, event.Last = e.Series.Count, e.Series.LastObservedTime.Time
		}
		if event.Last.IsZero() {
			event.Last = cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
		}
		out = append(out, event)
	}
	slices.SortStableFunc(out, func(a, b Event) int { return b.Last.Compare(a.Last) })
	return out
}

// logs reads the last lines of the pod that is in trouble, or of the first one
// where a probe fails. That there are none is no error: they are evidence, and
// the diagnosis stands without.
func (g *gatherer) logs(ctx context.Context, f *Facts) {
	ready := f.condition(mcpv1.ConditionReady)
	if g.logLines <= 0 || (f.current() && ready.Status == "True" && f.world().Trouble() == nil) {
		return
	}
	var pod *corev1.Pod
	for _, p := range f.Pods {
		if pod == nil {
			pod = p
		}
	}
	if t := f.world().Trouble(); t != nil && t.Pod != "" {
		pod = f.Pods[slices.IndexFunc(f.Pods, func(p *corev1.Pod) bool { return p.Name == t.Pod })]
	}
	if pod == nil {
		return
	}
	options := &corev1.PodLogOptions{TailLines: &g.logLines, LimitBytes: new(int64)}
	*options.LimitBytes = 64 << 10
	options.Container, options.Previous = troubled(pod)
	raw, err := g.clientset.CoreV1().Pods(g.namespace).GetLogs(pod.Name, options).DoRaw(ctx)
	if err != nil {
		return
	}
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); line != "" {
			f.Logs[pod.Name] = append(f.Logs[pod.Name], line)
		}
	}
}

// troubled is the container of a pod whose log tells most, and whether it is
// the log of the run before.
func troubled(pod *corev1.Pod) (container string, previous bool) {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		done := c.State.Terminated != nil && c.State.Terminated.ExitCode == 0
		switch {
		case c.State.Terminated != nil && !done:
			return c.Name, false
		case c.LastTerminationState.Terminated != nil && !c.Ready && !done:
			return c.Name, true
		}
	}
	if len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name, false
	}
	return "", false
}
