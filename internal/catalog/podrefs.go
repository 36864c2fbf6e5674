// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
)

// ProbeRefs are the references that the operator itself reads to dial.
func ProbeRefs(server *mcpv1.MCPServer) []Ref {
	refs := ConnectionRefs(server.Spec.External)
	refs = append(refs, TLSRefs(ClientTLS(server))...)
	if p := server.Spec.Probe; p != nil {
		refs = append(refs, HeaderRefs(p.Headers)...)
	}
	return SortRefs(refs)
}

// EnvRefs are what reaches the container as environment. An empty key is the
// whole object.
func EnvRefs(server *mcpv1.MCPServer) []Ref {
	var env []corev1.EnvVar
	var from []corev1.EnvFromSource
	if w := server.Spec.Workload; w != nil {
		env, from = w.Env, w.EnvFrom
	}
	if stdio := server.Spec.Stdio; stdio != nil {
		env = slices.Concat(env, stdio.Env)
	}
	var refs []Ref
	add := func(kind RefKind, name, key string, optional *bool) {
		refs = append(refs, Ref{Kind: kind, Name: name, Key: key, Optional: optional != nil && *optional})
	}
	for _, e := range env {
		switch from := e.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			add(RefSecret, from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
		case from.ConfigMapKeyRef != nil:
			add(RefConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
		}
	}
	for _, e := range from {
		switch {
		case e.SecretRef != nil:
			add(RefSecret, e.SecretRef.Name, "", e.SecretRef.Optional)
		case e.ConfigMapRef != nil:
			add(RefConfigMap, e.ConfigMapRef.Name, "", e.ConfigMapRef.Optional)
		}
	}
	return refs
}

// VolumeRefs are Secrets and ConfigMaps that the pods mount as volumes.
func VolumeRefs(server *mcpv1.MCPServer) []Ref {
	w := server.Spec.Workload
	if w == nil {
		return nil
	}
	var refs []Ref
	for _, v := range w.Volumes {
		switch {
		case v.Secret != nil:
			refs = append(refs, Ref{Kind: RefSecret, Name: v.Secret.SecretName, Optional: v.Secret.Optional != nil && *v.Secret.Optional})
		case v.ConfigMap != nil:
			refs = append(refs, Ref{Kind: RefConfigMap, Name: v.ConfigMap.Name, Optional: v.ConfigMap.Optional != nil && *v.ConfigMap.Optional})
		}
	}
	return refs
}

// Missing tells what is wrong with r, where the object was found or not, and
// has its key or not; empty strings when nothing is, or r is optional.
func (r Ref) Missing(namespace string, found, hasKey bool) (reason, message string) {
	secret := r.Kind == RefSecret
	switch {
	case r.Optional:
		return "", ""
	case !found && secret:
		return mcpv1.ReasonSecretNotFound, fmt.Sprintf("Secret %s does not exist. Create it in namespace %s.", r.Name, namespace)
	case !found:
		return mcpv1.ReasonConfigMapNotFound, fmt.Sprintf("ConfigMap %s does not exist. Create it in namespace %s.", r.Name, namespace)
	case r.Key != "" && !hasKey && secret:
		return mcpv1.ReasonSecretKeyNotFound, fmt.Sprintf("Secret %s has no key %s. Add it.", r.Name, r.Key)
	case r.Key != "" && !hasKey:
		return mcpv1.ReasonConfigMapKeyNotFound, fmt.Sprintf("ConfigMap %s has no key %s. Add it.", r.Name, r.Key)
	default:
		return "", ""
	}
}
