// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
)

// MCPToolReconciler writes the status of MCPTools. What it writes was found
// out by the passes over the servers that a tool names.
type MCPToolReconciler struct {
	Client   client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	verdicts *verdicts
	memory   *memory
	metrics  *metrics
}

// Reconcile makes one pass over one MCPTool.
func (r *MCPToolReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var tool mcpv1.MCPTool
	if err := r.Client.Get(ctx, req.NamespacedName, &tool); err != nil || tool.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	servers, err := r.servers(ctx, &tool)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := metav1.NewTime(r.Clock.Now())
	status, complete := toolStatus(&tool, servers, now)
	if !complete {
		// A server that exists has not been looked at since the tool changed
		// or the operator started. It will say so.
		return reconcile.Result{}, nil
	}
	return r.writeStatus(ctx, &tool, status)
}

// servers gives what is known of the tool with each server that it names.
func (r *MCPToolReconciler) servers(ctx context.Context, tool *mcpv1.MCPTool) ([]toolOnServer, error) {
	var list mcpv1.MCPServerList
	// They are only looked at: no copies.
	if err := r.Client.List(ctx, &list, client.InNamespace(tool.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	known := r.verdicts.of(tool.Namespace, tool.Name)
	var out []toolOnServer
	exists := map[string]bool{}
	for i := range list.Items {
		server := &list.Items[i]
		exists[server.Name] = server.DeletionTimestamp == nil
		if server.DeletionTimestamp == nil && catalog.Selects(tool, server) {
			entry := toolOnServer{name: server.Name, exists: true}
			if v, ok := known[server.Name]; ok && v.generation == tool.Generation {
				entry.verdict = &v
			}
			out = append(out, entry)
		}
	}
	for _, ref := range tool.Spec.ServerRefs {
		if !exists[ref.Name] {
			out = append(out, toolOnServer{name: ref.Name})
		}
	}
	return out, nil
}

func (r *MCPToolReconciler) writeStatus(ctx context.Context, tool *mcpv1.MCPTool, status mcpv1.MCPToolStatus) (reconcile.Result, error) {
	if equal(tool.Status, status) {
		return reconcile.Result{}, nil
	}
	updated := tool.DeepCopy()
	updated.Status = status
	patch := client.MergeFromWithOptions(tool, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Status().Patch(ctx, updated, patch); {
	case apierrors.IsConflict(err):
		// The cache was behind, most often this controller's own last write.
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	case apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Error(err, "The operator may not patch mcptools/status; grant it by its ClusterRole")
		return reconcile.Result{RequeueAfter: retryProblem}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write status: %w", err)
	}
	r.metrics.statusWritten("MCPTool")
	tellTransitions(r.Recorder, tool, tool.Status.Conditions, status.Conditions, mcpv1.ConditionAccepted)
	return reconcile.Result{}, nil
}

// setup registers the controller of MCPTools.
func (r *MCPToolReconciler) setup(mgr ctrl.Manager, opts Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("mcptool").
		For(&mcpv1.MCPTool{}, builder.WithPredicates(forgetDeleted(r.memory), predicate.GenerationChangedPredicate{})).
		Watches(&mcpv1.MCPServer{}, handler.EnqueueRequestsFromMapFunc(r.toolsOfServer), builder.WithPredicates(deletedOnly())).
		WatchesRawSource(wakeUps(r.verdicts.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Concurrency, ReconciliationTimeout: opts.Timeout}).
		Complete(r)
}

// toolsOfServer gives the tools that name a server which is gone. All other
// changes of a server reach its tools as verdicts.
func (r *MCPToolReconciler) toolsOfServer(ctx context.Context, obj client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, value := range []string{obj.GetName(), indexSelector} {
		var list mcpv1.MCPToolList
		if err := r.Client.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexServers: value}); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Cannot list the tools of a server")
			return nil
		}
		for i := range list.Items {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
