// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// progressPause is how long mere progress may wait to be written. While pods
// start or are replaced, numbers move with every pod; a fleet that starts
// would write its statuses many times over.
const progressPause = 2 * time.Second

// postpone reports whether the status that a pass came to may be written
// later, and asks for another pass then. Only progress may wait, and not for
// longer than progressPause since the first that was not written.
func (s *serverScope) postpone(after *mcpv1.MCPServerStatus) bool {
	if !progressOnly(&s.server.Status, after) {
		return false
	}
	if s.memory.unsaid.IsZero() {
		s.memory.unsaid = s.now
	}
	left := progressPause - s.now.Sub(s.memory.unsaid)
	s.again(left)
	return left > 0
}

// progressOnly reports whether after says no more than that what was under way
// before still is: of the same spec and catalog, Reconciling as before, Ready
// with the same status, and nothing wrong that was not wrong before.
func progressOnly(before, after *mcpv1.MCPServerStatus) bool {
	if before.ObservedGeneration != after.ObservedGeneration || before.CatalogDigest != after.CatalogDigest || before.URL != after.URL {
		return false
	}
	underWay := func(conditions []metav1.Condition) bool {
		return meta.IsStatusConditionTrue(conditions, mcpv1.ConditionReconciling)
	}
	was, is := conditionVerdict(before.Conditions, mcpv1.ConditionReady), conditionVerdict(after.Conditions, mcpv1.ConditionReady)
	if !underWay(before.Conditions) || !underWay(after.Conditions) || was.status != is.status {
		return false
	}
	for _, c := range after.Conditions {
		is := verdict{c.Status, c.Reason, c.Message}
		if was, known := held(before.Conditions, c.Type); known && was == is {
			continue
		}
		if c.Status != metav1.ConditionTrue && !passing(c.Reason) {
			return false
		}
	}
	return true
}
