// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// tellTransitions records an event for each condition of types whose status
// or reason differs. An event says no more than the condition does.
func tellTransitions(recorder events.EventRecorder, obj runtime.Object, before, after []metav1.Condition, types ...string) {
	for _, t := range types {
		was, is := meta.FindStatusCondition(before, t), meta.FindStatusCondition(after, t)
		if is == nil || (was != nil && was.Status == is.Status && was.Reason == is.Reason) {
			continue
		}
		kind := corev1.EventTypeNormal
		// Before the first verdict nothing was lost that could be warned of.
		if is.Status == metav1.ConditionFalse && !(was == nil && meta.IsStatusConditionTrue(after, "Reconciling")) {
			kind = corev1.EventTypeWarning
		}
		recorder.Eventf(obj, nil, kind, is.Reason, t, "%s", bounded(t+" is "+string(is.Status)+": "+is.Message, 1000))
	}
}

func conditionVerdict(conditions []metav1.Condition, t string) verdict {
	v, _ := held(conditions, t)
	return v
}
