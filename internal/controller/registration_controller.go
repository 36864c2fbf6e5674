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
	"github.com/espalier-dev/espalier/internal/tracing"
)

// registrationReconciler writes the status of the registrations of one kind.
// What it writes was found out by the passes over the servers that they name.
type registrationReconciler struct {
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	kind     registrationKind

	verdicts *verdicts
	memory   *memory
	writes   *ownWrites
	metrics  *metrics
	tracer   *tracing.Tracer
}

// Reconcile makes one pass over one registration.
func (r *registrationReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := r.kind.object()
	if err := r.client.Get(ctx, req.NamespacedName, obj); err != nil || obj.GetDeletionTimestamp() != nil {
		r.writes.forget(req.NamespacedName)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if r.writes.behind(obj) {
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	}
	servers, err := r.servers(ctx, obj)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := metav1.NewTime(r.clock.Now())
	status, complete := registrationStatus(obj, servers, now)
	if !complete {
		// A server that exists has not been looked at since the object changed
		// or the operator started. It will say so.
		return reconcile.Result{}, nil
	}
	return r.writeStatus(ctx, obj, status)
}

// servers gives what is known of obj with each server that it names.
func (r *registrationReconciler) servers(ctx context.Context, obj mcpv1.Registration) ([]onServer, error) {
	var list mcpv1.MCPServerList
	// They are only looked at: no copies.
	if err := r.client.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	known := r.verdicts.of(obj.GetNamespace(), catalog.IDOf(obj))
	var out []onServer
	exists := map[string]bool{}
	for i := range list.Items {
		server := &list.Items[i]
		exists[server.Name] = server.DeletionTimestamp == nil
		if server.DeletionTimestamp == nil && catalog.Selects(obj, server) {
			entry := onServer{name: server.Name, exists: true}
			if v, ok := known[server.Name]; ok && v.generation == obj.GetGeneration() {
				entry.verdict = &v
			}
			out = append(out, entry)
		}
	}
	for _, ref := range obj.GetRegistrationSpec().ServerRefs {
		if !exists[ref.Name] {
			out = append(out, onServer{name: ref.Name})
		}
	}
	return out, nil
}

func (r *registrationReconciler) writeStatus(ctx context.Context, obj mcpv1.Registration, status mcpv1.RegistrationStatus) (reconcile.Result, error) {
	updated, ok := obj.DeepCopyObject().(mcpv1.Registration)
	if !ok {
		return reconcile.Result{}, fmt.Errorf("%T is no registration", obj)
	}
	*updated.GetRegistrationStatus() = status
	r.kind.describe(updated)
	if equal(obj, updated) {
		return reconcile.Result{}, nil
	}
	before := obj.GetRegistrationStatus().Conditions
	patch := client.MergeFromWithOptions(obj, client.MergeFromWithOptimisticLock{})
	switch err := r.client.Status().Patch(ctx, updated, patch); {
	case apierrors.IsConflict(err):
		// The cache was behind, most often this controller's own last write.
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	case apierrors.IsForbidden(err):
		ctrl.LoggerFrom(ctx).Error(err, mayNot("patch", r.kind.resource+".mcp.espalier.dev/status", client.ObjectKeyFromObject(obj).String()))
		return reconcile.Result{RequeueAfter: retryProblem}, nil
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("write status: %w", err)
	}
	r.writes.note(updated)
	r.metrics.statusWritten(string(r.kind.kind))
	tellTransitions(r.recorder, obj, before, status.Conditions, mcpv1.ConditionAccepted)
	return reconcile.Result{}, nil
}

// setup registers the controller of one kind.
func (r *registrationReconciler) setup(mgr ctrl.Manager, opts Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(r.kind.name).
		For(r.kind.object(), builder.WithPredicates(forgetDeleted(r.memory), predicate.GenerationChangedPredicate{})).
		Watches(&mcpv1.MCPServer{}, handler.EnqueueRequestsFromMapFunc(r.ofServer), builder.WithPredicates(deletedOnly())).
		WatchesRawSource(wakeUps(r.verdicts.wake[r.kind.kind])).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Concurrency, ReconciliationTimeout: opts.Timeout}).
		Complete(traced(r.tracer, string(r.kind.kind), r))
}

// ofServer gives what names a server that is gone. All other changes of a
// server reach its registrations as verdicts.
func (r *registrationReconciler) ofServer(ctx context.Context, obj client.Object) []reconcile.Request {
	found, err := r.kind.naming(ctx, r.client, obj.GetNamespace(), obj.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the "+r.kind.resource+" of a server")
		return nil
	}
	out := make([]reconcile.Request, 0, len(found))
	for _, registration := range found {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(registration)})
	}
	return out
}
