// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// ErrInvalidPodTemplate says that workload.podTemplate cannot be merged.
var ErrInvalidPodTemplate = errors.New("invalid podTemplate")

// overlay merges the user's podTemplate over base. Selector labels, the
// server's container and its ports, and Espalier's volumes and annotation are
// asserted again afterwards.
func overlay(base *corev1.PodTemplateSpec, patch *mcpv1.JSON) (*corev1.PodTemplateSpec, error) {
	if patch == nil || len(patch.Raw) == 0 {
		return base, nil
	}
	if err := strict(patch.Raw); err != nil {
		return nil, err
	}
	original, err := json.Marshal(base)
	if err != nil {
		return nil, err
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch.Raw, corev1.PodTemplateSpec{})
	if err != nil {
		return nil, fmt.Errorf("%w: it does not merge as a strategic merge patch", ErrInvalidPodTemplate)
	}
	var out corev1.PodTemplateSpec
	if err := json.Unmarshal(merged, &out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidPodTemplate, err)
	}
	return &out, reassert(&out, base)
}

// strict refuses unknown fields, which a typo would otherwise hide. The
// directives of a strategic merge patch ($patch, $setElementOrder/...) are no
// fields and pass.
func strict(raw []byte) error {
	var generic map[string]any
	if err := json.Unmarshal(raw, &generic); err != nil {
		return fmt.Errorf("%w: it is not an object", ErrInvalidPodTemplate)
	}
	dropDirectives(generic)
	plain, err := json.Marshal(generic)
	if err != nil {
		return err
	}
	var t corev1.PodTemplateSpec
	problems, err := kjson.UnmarshalStrict(plain, &t)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidPodTemplate, err)
	}
	if len(problems) > 0 {
		return fmt.Errorf("%w: %w", ErrInvalidPodTemplate, problems[0])
	}
	return nil
}

func dropDirectives(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if strings.HasPrefix(key, "$") {
				delete(v, key)
				continue
			}
			dropDirectives(value)
		}
	case []any:
		for _, item := range v {
			dropDirectives(item)
		}
	}
}

// reassert puts back what is Espalier's.
func reassert(out, base *corev1.PodTemplateSpec) error {
	if digest, ok := base.Annotations[mcpv1.AnnotationEnv]; ok {
		setKey(&out.Annotations, mcpv1.AnnotationEnv, digest)
	}
	at := slices.IndexFunc(out.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerServer })
	if at < 0 {
		return fmt.Errorf("%w: spec.containers: the container %q cannot be removed", ErrInvalidPodTemplate, ContainerServer)
	}
	server, want := &out.Spec.Containers[at], &base.Spec.Containers[0]
	server.Image, server.Command, server.Args = want.Image, want.Command, want.Args
	for _, p := range want.Ports {
		server.Ports = slices.DeleteFunc(server.Ports, func(q corev1.ContainerPort) bool {
			return q.Name == p.Name || (q.ContainerPort == p.ContainerPort && q.Protocol == p.Protocol)
		})
	}
	server.Ports = slices.Concat(want.Ports, server.Ports)
	for _, m := range want.VolumeMounts {
		if !strings.HasPrefix(m.Name, "espalier-") {
			continue
		}
		server.VolumeMounts = slices.DeleteFunc(server.VolumeMounts, func(n corev1.VolumeMount) bool { return n.MountPath == m.MountPath })
		server.VolumeMounts = append(server.VolumeMounts, m)
	}
	for _, c := range base.Spec.InitContainers {
		out.Spec.InitContainers = slices.DeleteFunc(out.Spec.InitContainers, func(d corev1.Container) bool { return d.Name == c.Name })
	}
	out.Spec.InitContainers = slices.Concat(base.Spec.InitContainers, out.Spec.InitContainers)
	for _, v := range base.Spec.Volumes {
		if !strings.HasPrefix(v.Name, "espalier-") {
			continue
		}
		out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(w corev1.Volume) bool { return w.Name == v.Name })
		out.Spec.Volumes = append(out.Spec.Volumes, v)
	}
	return nil
}
