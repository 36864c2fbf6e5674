// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why is "kubectl mcp why": the first cause for which a server, a tool,
// a resource or a prompt does not work, the evidence, and what to do.
//
// Facts are gathered first. The diagnosis is a function of them alone. What the
// operator has judged is taken from status; only where nobody keeps a status
// true is it judged anew, by the operator's own rooms.
package why

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/podstate"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// Facts are all that is looked at of one server.
type Facts struct {
	Server *mcpv1.MCPServer
	// Life of the operator that works on its namespace.
	Life operator.Life
	// Skew between the plugin and that operator, in words; empty for none.
	Skew string
	Now  time.Time
	// Registrations that name the server.
	Registrations []mcpv1.Registration
	// Servers of the namespace by name, this one too.
	Servers map[string]*mcpv1.MCPServer
	// Named Secrets and ConfigMaps.
	Named map[NamedID]Named
	// Deployment of the server, its ReplicaSets and pods, sorted by name.
	Deployment  *appsv1.Deployment
	ReplicaSets []appsv1.ReplicaSet
	Pods        []*corev1.Pod
	// Events of the Deployment, the ReplicaSets and the pods, the newest first.
	Events []Event
	// Logs are the last lines of containers, by pod.
	Logs map[string][]string
	// Unread is what could not be read, by resource, and why.
	Unread map[string]string

	// built is the catalog, once it was asked for.
	built *catalog.Catalog
}

// NamedID names a Secret or ConfigMap in the server's namespace.
type NamedID struct {
	Kind catalog.RefKind
	Name string
}

// Named is what is known of a Secret or ConfigMap. Values are never kept.
type Named struct {
	Found bool
	// Unread: it may not be read.
	Unread bool
	Keys   []string
}

// Event of Kubernetes, in what is shown of it.
type Event struct {
	// On is KIND/NAME.
	On      string
	Reason  string
	Message string
	Count   int32
	Last    time.Time
}

func (f *Facts) condition(kind string) *metav1.Condition {
	return meta.FindStatusCondition(f.Server.Status.Conditions, kind)
}

// current: the status is of this spec, and somebody keeps it true.
func (f *Facts) current() bool {
	return !f.Life.Down() && f.judged()
}

// judged: the status is of this spec.
func (f *Facts) judged() bool {
	return f.condition(mcpv1.ConditionReady) != nil && f.Server.Status.ObservedGeneration == f.Server.Generation
}

func (f *Facts) world() podstate.World {
	return podstate.World{Server: f.Server, Deployment: f.Deployment, Pods: f.Pods, Now: f.Now}
}

// traffic is how many pods take traffic.
func (f *Facts) traffic() int { return int(podstate.Serving(f.Pods)) }

// zero: no pods are wanted.
func (f *Facts) zero() bool {
	return resources.HasPods(f.Server) && resources.Replicas(f.Server) == 0
}

// catalog that the operator would make of the spec; nil for a server that has
// its own.
func (f *Facts) catalog() *catalog.Catalog {
	if f.built == nil {
		f.built = served(f.Server, f.Registrations, f.Servers)
	}
	return f.built
}

// served builds the catalog as the operator does; nil for a server that has
// its own.
func served(server *mcpv1.MCPServer, registrations []mcpv1.Registration, servers map[string]*mcpv1.MCPServer) *catalog.Catalog {
	if !resources.Fronted(server) {
		return nil
	}
	compiled := make([]*catalog.Compiled, 0, len(registrations))
	for _, r := range registrations {
		compiled = append(compiled, catalog.Compile(r))
	}
	c := catalog.Build(server, compiled, serverconfig.ProbeTrust{})
	lookup := func(name string) *mcpv1.MCPServer { return servers[name] }
	c.AddUpstreams(server, catalog.ResolveUpstreams(server, lookup, resources.URL))
	return c
}

// refs are all Secrets and ConfigMaps that the server and what it serves name.
func (f *Facts) refs() []catalog.Ref {
	refs := slices.Concat(catalog.ProbeRefs(f.Server), podRefs(f.Server))
	if c := f.catalog(); c != nil {
		refs = append(refs, c.Refs...)
	}
	return catalog.SortRefs(refs)
}

// podRefs are those without which no pod starts.
func podRefs(server *mcpv1.MCPServer) []catalog.Ref {
	return catalog.SortRefs(slices.Concat(catalog.EnvRefs(server), catalog.VolumeRefs(server), catalog.ServingRefs(server)))
}

// missing tells what is wrong with ref; unread when that cannot be known.
func (f *Facts) missing(ref catalog.Ref) (reason, message string, unread bool) {
	named, known := f.Named[NamedID{ref.Kind, ref.Name}]
	if !known || named.Unread {
		return "", "", !ref.Optional
	}
	reason, message = ref.Missing(f.Server.Namespace, named.Found, slices.Contains(named.Keys, ref.Key))
	return reason, message, false
}
