// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Indexes of the cache. A list by label would look at every object of the
// namespace in each pass.
const (
	// indexServer holds, for children and pods, the server that the label names.
	indexServer = "server"
	// indexServers holds the names of serverRefs, or indexSelector.
	indexServers = "servers"
	// indexSelector marks what selects servers by label. It is no
	// possible name of a server.
	indexSelector = "*"
	// indexUpstreams holds the names of the servers that a server names as its
	// upstreams.
	indexUpstreams = "upstreams"
)

// Setup registers the controllers with mgr. r holds what they need.
func Setup(ctx context.Context, mgr ctrl.Manager, r *MCPServerReconciler, sources Sources, opts Options, registerer prometheus.Registerer) error {
	r.memory = newMemory()
	r.rollouts = newRollouts(r.MaxServerRollouts)
	r.writes = newOwnWrites()
	r.verdicts = newVerdicts()
	r.metrics = newMetrics(registerer)
	r.rollouts.register(registerer)
	for _, kind := range registrationKinds {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind.object(), indexServers, serverNames); err != nil {
			return err
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &mcpv1.MCPServer{}, indexUpstreams, upstreamNames); err != nil {
		return err
	}
	for _, kind := range childKinds {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind.of, indexServer, labelledServer); err != nil {
			return err
		}
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Service{}, indexRollout, markedRollout); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, indexServer, labelledServer); err != nil {
		return err
	}
	if err := r.setup(mgr, sources, opts); err != nil {
		return err
	}
	for _, kind := range registrationKinds {
		registrations := &registrationReconciler{
			client: r.Client, recorder: r.Recorder, clock: r.Clock, kind: kind,
			verdicts: r.verdicts, memory: r.memory, writes: newOwnWrites(), metrics: r.metrics, tracer: r.Tracer,
		}
		if err := registrations.setup(mgr, opts); err != nil {
			return err
		}
	}
	return nil
}

func labelledServer(obj client.Object) []string {
	if name := obj.GetLabels()[mcpv1.LabelServer]; name != "" {
		return []string{name}
	}
	return nil
}

func serverNames(obj client.Object) []string {
	registration, ok := obj.(mcpv1.Registration)
	if !ok {
		return nil
	}
	spec := registration.GetRegistrationSpec()
	if spec.ServerSelector != nil {
		return []string{indexSelector}
	}
	out := make([]string, 0, len(spec.ServerRefs))
	for _, ref := range spec.ServerRefs {
		out = append(out, ref.Name)
	}
	return out
}
