// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var childGroups = map[string]schema.GroupVersion{
	"Deployment":          appsv1.SchemeGroupVersion,
	"Service":             corev1.SchemeGroupVersion,
	"ConfigMap":           corev1.SchemeGroupVersion,
	"PodDisruptionBudget": policyv1.SchemeGroupVersion,
	"NetworkPolicy":       networkingv1.SchemeGroupVersion,
}

func kindOf(kind string) schema.GroupVersionKind { return childGroups[kind].WithKind(kind) }

// objects gives the items of list as pointers.
func objects(list client.ObjectList) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	out := make([]client.Object, 0, len(items))
	for _, item := range items {
		obj, ok := item.(client.Object)
		if !ok {
			return nil, fmt.Errorf("%T is no object", item)
		}
		out = append(out, obj)
	}
	return out, nil
}
