// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// verdict is a condition without its bookkeeping.
type verdict struct {
	status  metav1.ConditionStatus
	reason  string
	message string
}

func yes(reason, message string) verdict { return verdict{metav1.ConditionTrue, reason, message} }

func no(reason, message string) verdict { return verdict{metav1.ConditionFalse, reason, message} }

func unknown(reason, message string) verdict {
	return verdict{metav1.ConditionUnknown, reason, message}
}

func (p *problem) verdict() verdict { return no(p.reason, p.message) }

// maxMessage of a condition, in bytes; the API allows 32 KiB.
const maxMessage = 1024

// setCondition sets conditionType in conditions. The transition time moves
// only with the status.
func setCondition(conditions *[]metav1.Condition, conditionType string, v verdict, generation int64, now metav1.Time) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: conditionType, Status: v.status, Reason: v.reason, Message: bounded(v.message, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: now,
	})
}

// held gives a condition's present value as a verdict, if it has been
// computed before.
func held(conditions []metav1.Condition, conditionType string) (verdict, bool) {
	c := meta.FindStatusCondition(conditions, conditionType)
	if c == nil {
		return verdict{}, false
	}
	return verdict{c.Status, c.Reason, c.Message}, true
}

// sortConditions puts conditions into a fixed order.
func sortConditions(conditions []metav1.Condition, order []string) {
	rank := func(c metav1.Condition) int {
		if at := slices.Index(order, c.Type); at >= 0 {
			return at
		}
		return len(order)
	}
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return rank(a) - rank(b) })
}
