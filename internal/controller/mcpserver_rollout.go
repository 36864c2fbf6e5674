// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/resources"
)

// indexRollout holds, for the Services of servers that are being given another
// image of the shared server, that they are.
const indexRollout = "rollout"

// rolloutUnmark is when a mark that is not needed any more is removed.
const rolloutUnmark = 10 * time.Millisecond

func markedRollout(obj client.Object) []string {
	if mark := obj.GetLabels()[mcpv1.LabelRollout]; mark != "" {
		return []string{"yes"}
	}
	return nil
}

// stage is which image of the shared server the pods may have in a pass, and
// the mark of its rollout; empty for none.
type stage struct{ image, mark string }

// rolloutMark is the mark that the server bears.
func (s *serverScope) rolloutMark() string {
	if service := s.children[childKey{"Service", resources.Name(s.server)}]; service != nil {
		return service.GetLabels()[mcpv1.LabelRollout]
	}
	return ""
}

// hasImage reports whether pods of d have the operator's image of the shared
// server.
func (r *MCPServerReconciler) hasImage(d *appsv1.Deployment) bool {
	return resources.ServerImage(&d.Spec.Template.Spec) == r.Resources.PulledServerImage()
}

// stageImage says which image the pods may have in this pass. A server that is
// new, or has no pods, has the operator's; one with pods of another image waits
// for its turn, and keeps the other meanwhile.
func (r *MCPServerReconciler) stageImage(ctx context.Context, s *serverScope) (stage, error) {
	target, previous := r.Resources.ServerImage, s.server.Status.ServerImage
	if s.deployment == nil || !resources.Fronted(s.server) {
		return stage{image: target}, nil
	}
	if err := r.rollouts.seed(func() (map[types.NamespacedName]rolloutState, error) { return r.rolloutsBegun(ctx) }); err != nil {
		return stage{}, err
	}
	mark := s.rolloutMark()
	switch {
	case r.hasImage(s.deployment), previous == "", previous == r.Resources.PulledServerImage():
		if r.rollouts.done(s.key) {
			mark = ""
		}
		return stage{target, mark}, nil
	case resources.Replicas(s.server) == 0:
		return stage{image: target}, nil
	case !r.rollouts.admit(s.key):
		s.again(retryProblem)
		return stage{previous, mark}, nil
	case mark != "":
		return stage{target, mark}, nil
	case meta.IsStatusConditionTrue(s.server.Status.Conditions, mcpv1.ConditionReady):
		return stage{target, mcpv1.RolloutOfReady}, nil
	default:
		return stage{target, mcpv1.RolloutOfUnready}, nil
	}
}

// rolloutsBegun reads from the cache which servers a former operator has given
// the image, and from their statuses how they fare.
func (r *MCPServerReconciler) rolloutsBegun(ctx context.Context) (map[types.NamespacedName]rolloutState, error) {
	var list corev1.ServiceList
	if err := r.Client.List(ctx, &list, client.MatchingFields{indexRollout: "yes"}); err != nil {
		return nil, err
	}
	out := map[types.NamespacedName]rolloutState{}
	for i := range list.Items {
		service := &list.Items[i]
		key := types.NamespacedName{Namespace: service.Namespace, Name: service.Labels[mcpv1.LabelServer]}
		var server mcpv1.MCPServer
		var d appsv1.Deployment
		if err := errors.Join(r.Client.Get(ctx, key, &server), r.Client.Get(ctx, client.ObjectKeyFromObject(service), &d)); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, err
		}
		out[key] = rolloutUnderway
		available := conditionVerdict(server.Status.Conditions, mcpv1.ConditionAvailable)
		ready := conditionVerdict(server.Status.Conditions, mcpv1.ConditionReady)
		if r.hasImage(&d) && service.Labels[mcpv1.LabelRollout] == mcpv1.RolloutOfReady &&
			(rolloutTrouble(available) || (ready.status == metav1.ConditionFalse && !meta.IsStatusConditionTrue(server.Status.Conditions, mcpv1.ConditionReconciling))) {
			out[key] = rolloutFailed
		}
	}
	return out, nil
}

// rolloutTrouble: the new pods do not come up, or what they run is no server.
func rolloutTrouble(available verdict) bool {
	return available.status == metav1.ConditionFalse && available.reason != mcpv1.ReasonRollingOut && available.reason != mcpv1.ReasonStarting
}

// observeRollout notes, at the end of a pass, how the server fares with the
// image that it was given.
func (r *MCPServerReconciler) observeRollout(ctx context.Context, s *serverScope) {
	d := s.deployment
	if d == nil || !resources.Fronted(s.server) {
		r.rollouts.drop(s.key)
		return
	}
	mark := s.rolloutMark()
	switch {
	case !r.hasImage(d):
		return
	case mark == "":
		r.rollouts.drop(s.key)
		if r.rollouts.known() {
			return
		}
	}
	state, serves := rolloutOutcome(s, mark)
	if serves {
		r.rollouts.worked()
	}
	if mark == "" {
		return
	}
	if stopped := r.rollouts.set(s.key, state); stopped {
		ctrl.LoggerFrom(ctx).Error(nil, "No more servers are given the new image: too many do not serve with it", "image", r.Resources.ServerImage, "failed", maxFailedRollouts)
	}
	if state == rolloutDone {
		s.again(rolloutUnmark)
	}
}

// rolloutOutcome says how far a server is with the image that its Deployment
// has, and whether it serves with it.
func rolloutOutcome(s *serverScope, mark string) (state rolloutState, serves bool) {
	e := evaluate(s)
	serves = !e.zero && !s.world().RollingOut() && !e.pending && e.reconciling == nil && e.ready.status == metav1.ConditionTrue
	failing := rolloutTrouble(e.available) || e.stalled != nil || (e.ready.status == metav1.ConditionFalse && e.reconciling == nil)
	switch {
	case e.zero, serves:
		return rolloutDone, serves
	case mark == mcpv1.RolloutOfUnready && (failing || !s.world().RollingOut()):
		// It did not serve with the image before either.
		return rolloutDone, false
	case failing:
		return rolloutFailed, false
	default:
		return rolloutUnderway, false
	}
}
