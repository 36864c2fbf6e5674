// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// ErrPodSecurity says that a pod template breaks the Pod Security level.
var ErrPodSecurity = errors.New("pod security violation")

// PodSecurity judges pod templates by a Pod Security level.
type PodSecurity struct {
	level     psapi.LevelVersion
	evaluator policy.Evaluator
}

// NewPodSecurity makes a judge for level: privileged, baseline or restricted.
func NewPodSecurity(level string) (*PodSecurity, error) {
	parsed, err := psapi.ParseLevel(level)
	if err != nil {
		return nil, err
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	return &PodSecurity{level: psapi.LevelVersion{Level: parsed, Version: psapi.LatestVersion()}, evaluator: evaluator}, nil
}

// Check returns an error that wraps ErrPodSecurity and names what t breaks.
func (p *PodSecurity) Check(t *corev1.PodTemplateSpec) error {
	result := policy.AggregateCheckResults(p.evaluator.EvaluatePod(p.level, &t.ObjectMeta, &t.Spec))
	if result.Allowed {
		return nil
	}
	return fmt.Errorf("%w of level %s: %s", ErrPodSecurity, p.level.Level, result.ForbiddenDetail())
}
