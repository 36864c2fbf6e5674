// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/resources"
	"github.com/espalier-dev/espalier/internal/tracing"
)

// References is what the controller needs of internal/references.
type References interface {
	Resolve(ctx context.Context, owner references.Owner, refs []catalog.Ref) (map[references.ID]references.State, error)
	Forget(owner references.Owner)
}

// MCPServerReconciler brings MCPServers to their desired state and tells
// their true one.
type MCPServerReconciler struct {
	// Client reads from the cache; APIReader does not.
	Client    client.Client
	APIReader client.Reader
	Recorder  events.EventRecorder
	Clock     clock.PassiveClock

	Resources   resources.Options
	PodSecurity *resources.PodSecurity
	Prober      Prober
	References  References
	// ClusterKeys are those of service account tokens.
	ClusterKeys ClusterKeys
	// Tokens gives the source of the probe's tokens for an audience.
	Tokens func(audience string) func() (string, error)
	// TrustedKeys are the probe's public keys.
	TrustedKeys []string
	// Tracer of the passes over all kinds; nil for none.
	Tracer *tracing.Tracer

	// MaxServerRollouts is how many servers are given a new image of the shared
	// server at once; DefaultServerRollouts when 0.
	MaxServerRollouts int

	memory   *memory
	rollouts *rollouts
	writes   *ownWrites
	verdicts *verdicts
	metrics  *metrics
}

// Reconcile makes one pass over one MCPServer.
func (r *MCPServerReconciler) Reconcile(ctx context.Context, req reconcile.Request) (_ reconcile.Result, err error) {
	var server mcpv1.MCPServer
	if err := r.Client.Get(ctx, req.NamespacedName, &server); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if server.DeletionTimestamp != nil {
		// Children go by their owner references; nothing holds the object.
		r.forget(req.NamespacedName)
		return reconcile.Result{}, nil
	}
	if r.writes.behind(&server) {
		return reconcile.Result{RequeueAfter: retryConflict}, nil
	}
	s := &serverScope{key: req.NamespacedName, server: &server, memory: r.memory.server(req.NamespacedName), now: r.Clock.Now()}
	if err := r.runPhases(ctx, s); err != nil {
		return reconcile.Result{}, err
	}
	r.observeRollout(ctx, s)
	status := serverStatus(s)
	r.verdicts.publish(s.key, registrationVerdicts(s, conditionVerdict(status.Conditions, mcpv1.ConditionSynced)))
	if err := r.writeStatus(ctx, s, status); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: s.requeueAfter}, nil
}

// forget drops all that is remembered of a server that is gone.
func (r *MCPServerReconciler) forget(key types.NamespacedName) {
	r.Prober.Forget(key)
	r.References.Forget(key)
	r.memory.forget(key)
	r.rollouts.drop(key)
	r.writes.forget(key)
	r.verdicts.publish(key, nil)
	r.metrics.forgetServer(key)
}

// writeStatus writes status when it differs from the one that was read and may
// not wait, and then, only when that succeeded, tells transitions as events.
func (r *MCPServerReconciler) writeStatus(ctx context.Context, s *serverScope, status mcpv1.MCPServerStatus) error {
	r.metrics.observeServer(s.key, status)
	if equal(s.server.Status, status) {
		s.memory.unsaid = time.Time{}
		return nil
	}
	if s.postpone(&status) {
		return nil
	}
	updated := s.server.DeepCopy()
	updated.Status = status
	patch := client.MergeFromWithOptions(s.server, client.MergeFromWithOptimisticLock{})
	switch err := r.Client.Status().Patch(ctx, updated, patch); {
	case apierrors.IsConflict(err):
		// The cache was behind.
		s.again(retryConflict)
		return nil
	case apierrors.IsForbidden(err):
		// There is no place left to tell it but the log.
		ctrl.LoggerFrom(ctx).Error(err, mayNot("patch", "mcpservers.mcp.espalier.dev/status", s.key.String()))
		s.again(retryProblem)
		return nil
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("write status: %w", err)
	}
	s.memory.unsaid = time.Time{}
	r.writes.note(updated)
	r.metrics.statusWritten("MCPServer")
	tellTransitions(r.Recorder, s.server, s.server.Status.Conditions, status.Conditions, toldConditions(&s.server.Status, &status)...)
	return nil
}

// Sources wake the controller beside what it watches.
type Sources struct {
	// Probes tells of servers whose probe results changed.
	Probes <-chan event.TypedGenericEvent[types.NamespacedName]
	// References tells of servers whose Secrets or ConfigMaps changed.
	References <-chan event.TypedGenericEvent[types.NamespacedName]
}

// Options of the controllers' queues.
type Options struct {
	// Concurrency is how many objects of a kind are reconciled at once.
	Concurrency int
	// Timeout of one pass.
	Timeout time.Duration
}

// setup registers the controller of MCPServers.
func (r *MCPServerReconciler) setup(mgr ctrl.Manager, sources Sources, opts Options) error {
	specOrLabels := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).
		Named("mcpserver").
		For(&mcpv1.MCPServer{}, builder.WithPredicates(specOrLabels)).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&networkingv1.NetworkPolicy{}).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&mcpv1.MCPServer{}, handler.EnqueueRequestsFromMapFunc(r.serversInFrontOf), builder.WithPredicates(upstreamChanged)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(serverOfPod)).
		WatchesRawSource(wakeUps(sources.Probes)).
		WatchesRawSource(wakeUps(sources.References)).
		WatchesRawSource(wakeUps(r.rollouts.wake)).
		WithOptions(controller.Options{MaxConcurrentReconciles: opts.Concurrency, ReconciliationTimeout: opts.Timeout})
	for _, kind := range registrationKinds {
		b = b.Watches(kind.object(), handler.EnqueueRequestsFromMapFunc(r.serversOf), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	}
	return b.Complete(traced(r.Tracer, "MCPServer", r))
}

// wakeUps turns a channel of names into a source.
func wakeUps(channel <-chan event.TypedGenericEvent[types.NamespacedName]) source.Source {
	return source.TypedChannel(channel, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, name types.NamespacedName) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: name}}
		}))
}

// serversOf gives the servers that a registration names, by name or by label.
func (r *MCPServerReconciler) serversOf(ctx context.Context, obj client.Object) []reconcile.Request {
	registration, ok := obj.(mcpv1.Registration)
	if !ok {
		return nil
	}
	spec := registration.GetRegistrationSpec()
	var out []reconcile.Request
	for _, ref := range spec.ServerRefs {
		out = append(out, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: ref.Name}})
	}
	if spec.ServerSelector == nil {
		return out
	}
	var servers mcpv1.MCPServerList
	// They are only looked at: no copies.
	if err := r.Client.List(ctx, &servers, client.InNamespace(obj.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot list the servers of a selector")
		return out
	}
	for i := range servers.Items {
		if catalog.Selects(registration, &servers.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&servers.Items[i])})
		}
	}
	return out
}

func serverOfPod(_ context.Context, obj client.Object) []reconcile.Request {
	name := obj.GetLabels()[mcpv1.LabelServer]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}}}
}
