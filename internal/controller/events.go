// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// tellTransitions records an event for each condition of types whose status
// or reason differs. An event says no more than the condition does. What is
// well from the beginning is no transition.
func tellTransitions(recorder events.EventRecorder, obj runtime.Object, before, after []metav1.Condition, types ...string) {
	for _, t := range types {
		was, is := meta.FindStatusCondition(before, t), meta.FindStatusCondition(after, t)
		switch {
		case is == nil, was == nil && is.Status == metav1.ConditionTrue:
			continue
		case was != nil && was.Status == is.Status && was.Reason == is.Reason:
			continue
		}
		kind := corev1.EventTypeNormal
		// What every start goes through is no reason to warn, unless something
		// was lost.
		lost := was != nil && was.Status == metav1.ConditionTrue
		if is.Status != metav1.ConditionTrue && (lost || !passing(is.Reason)) {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(obj, nil, kind, is.Reason, t, "%s", bounded(t+" is "+string(is.Status)+": "+is.Message, 1000))
	}
}

// toldConditions are the conditions of a server whose transitions are told:
// Ready, and what is wrong although Ready does not say so. A start that goes
// well is not told: the conditions say it, and a fleet that starts would write
// thousands of events that nobody needs.
func toldConditions(before, after *mcpv1.MCPServerStatus) []string {
	var told []string
	ready := conditionVerdict(after.Conditions, mcpv1.ConditionReady)
	if !startsWell(before, ready) {
		told = append(told, mcpv1.ConditionReady)
	}
	for _, t := range []string{mcpv1.ConditionResolvedRefs, mcpv1.ConditionAvailable, mcpv1.ConditionContractMet} {
		v := conditionVerdict(after.Conditions, t)
		if v.status == metav1.ConditionFalse && v.reason != ready.reason && !passing(v.reason) {
			told = append(told, t)
		}
	}
	return told
}

// startsWell: the server was never proved, and now it is, or is on its way with
// nothing wrong before or now.
func startsWell(before *mcpv1.MCPServerStatus, ready verdict) bool {
	was, known := held(before.Conditions, mcpv1.ConditionReady)
	return before.LastProbe == nil && (!known || passing(was.reason)) && (passing(ready.reason) || ready.reason == mcpv1.ReasonProved)
}

// passing: a state that every start and rollout goes through.
func passing(reason string) bool {
	switch reason {
	case mcpv1.ReasonStarting, mcpv1.ReasonRollingOut, mcpv1.ReasonPending, mcpv1.ReasonCatalogPending, mcpv1.ReasonRolloutForCredentials:
		return true
	}
	return false
}

func conditionVerdict(conditions []metav1.Condition, t string) verdict {
	v, _ := held(conditions, t)
	return v
}
