// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Indexes of registrations in the cache.
const (
	// indexServers holds the names of serverRefs, or indexSelector.
	indexServers = "servers"
	// indexSelector marks what selects servers by label. It is no
	// possible name of a server.
	indexSelector = "*"
)

// Setup registers the controllers with mgr. r holds what they need.
func Setup(ctx context.Context, mgr ctrl.Manager, r *MCPServerReconciler, sources Sources, opts Options, registerer prometheus.Registerer) error {
	r.memory = newMemory()
	r.writes = newOwnWrites()
	r.verdicts = newVerdicts()
	r.metrics = newMetrics(registerer)
	for _, kind := range registrationKinds {
		if err := mgr.GetFieldIndexer().IndexField(ctx, kind.object(), indexServers, serverNames); err != nil {
			return err
		}
	}
	if err := r.setup(mgr, sources, opts); err != nil {
		return err
	}
	for _, kind := range registrationKinds {
		registrations := &registrationReconciler{
			client: r.Client, recorder: r.Recorder, clock: r.Clock, kind: kind,
			verdicts: r.verdicts, memory: r.memory, writes: newOwnWrites(), metrics: r.metrics,
		}
		if err := registrations.setup(mgr, opts); err != nil {
			return err
		}
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
