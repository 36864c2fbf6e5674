// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// serversInFrontOf gives the servers that the one given may be an upstream of,
// at whatever remove: a circle may close anywhere.
func (r *MCPServerReconciler) serversInFrontOf(ctx context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	seen := map[string]bool{obj.GetName(): true}
	for next := []string{obj.GetName()}; len(next) > 0; next = next[1:] {
		var fronts mcpv1.MCPServerList
		// They are only looked at: no copies.
		err := r.Client.List(ctx, &fronts, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexUpstreams: next[0]}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the servers that a server may be an upstream of")
			return out
		}
		for i := range fronts.Items {
			if name := fronts.Items[i].Name; !seen[name] {
				seen[name] = true
				next = append(next, name)
				out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}})
			}
		}
	}
	return out
}

// upstreamNames are the servers that one names as its upstreams.
func upstreamNames(obj client.Object) []string {
	server, ok := obj.(*mcpv1.MCPServer)
	if !ok {
		return nil
	}
	var out []string
	for _, u := range server.Spec.Upstreams {
		if u.ServerRef != nil {
			out = append(out, u.ServerRef.Name)
		}
	}
	return out
}
