// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// Deployment of a server that has pods. live is the one in the cluster, or
// nil: the credentials that its pods mount already are kept as they are while
// they cover what is needed and nothing else changes, so that a tool which
// goes away, or a second one with the same Secret, rolls nothing out.
//
// The error wraps ErrInvalidPodTemplate.
func (o Options) Deployment(in TemplateInput, live *appsv1.Deployment) (*appsv1.Deployment, error) {
	bare := in
	bare.Refs = nil
	plain, err := o.template(bare)
	if err != nil {
		return nil, err
	}
	hash := Hash(plain)
	if live != nil && live.Annotations[mcpv1.AnnotationTemplate] == hash {
		if mounted := MountsOf(&live.Spec.Template.Spec); mounted.Covers(in.Refs) {
			in.Refs = mounted
		}
	}
	template, err := o.template(in)
	if err != nil {
		return nil, err
	}
	d := deployment(in.Server, template)
	d.Annotations = map[string]string{mcpv1.AnnotationTemplate: hash}
	return d, nil
}

func (o Options) template(in TemplateInput) (*corev1.PodTemplateSpec, error) {
	base := o.baseTemplate(in)
	var patch *mcpv1.JSON
	if w := in.Server.Spec.Workload; w != nil {
		patch = w.PodTemplate
	}
	t, err := overlay(base, patch)
	if err != nil {
		return nil, err
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	maps.Copy(t.Labels, Labels(in.Server))
	o.Mirrors.apply(&t.Spec)
	return t, nil
}

func deployment(server *mcpv1.MCPServer, template *corev1.PodTemplateSpec) *appsv1.Deployment {
	replicas := Replicas(server)
	history := int32(3)
	none, one := intstr.FromInt32(0), intstr.FromInt32(1)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: objectMeta(server, Name(server)),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: &history,
			Selector:             &metav1.LabelSelector{MatchLabels: Selector(server)},
			// An old pod goes only when a new one serves.
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &none, MaxSurge: &one},
			},
			Template: *template,
		},
	}
}
