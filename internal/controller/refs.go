// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
	"github.com/espalier-dev/espalier/internal/dialing"
	"github.com/espalier-dev/espalier/internal/references"
	"github.com/espalier-dev/espalier/internal/resources"
)

// resolveRefs asks for the states of all that the server and its tools name.
func (r *MCPServerReconciler) resolveRefs(ctx context.Context, s *serverScope) error {
	states, err := r.References.Resolve(ctx, s.key, s.allRefs())
	s.refs = states
	return err
}

func (s *serverScope) allRefs() []catalog.Ref {
	refs := slices.Concat(dialing.Refs(s.server), envRefs(s.server), volumeRefs(s.server))
	if s.catalog != nil {
		refs = append(refs, s.catalog.Refs...)
	}
	return catalog.SortRefs(refs)
}

// envRefs are what reaches the container as environment. An empty key is the
// whole object.
func envRefs(server *mcpv1.MCPServer) []catalog.Ref {
	var env []corev1.EnvVar
	var from []corev1.EnvFromSource
	if w := server.Spec.Workload; w != nil {
		env, from = w.Env, w.EnvFrom
	}
	if stdio := server.Spec.Stdio; stdio != nil {
		env = slices.Concat(env, stdio.Env)
	}
	var refs []catalog.Ref
	add := func(kind catalog.RefKind, name, key string, optional *bool) {
		refs = append(refs, catalog.Ref{Kind: kind, Name: name, Key: key, Optional: optional != nil && *optional})
	}
	for _, e := range env {
		switch from := e.ValueFrom; {
		case from == nil:
		case from.SecretKeyRef != nil:
			add(catalog.RefSecret, from.SecretKeyRef.Name, from.SecretKeyRef.Key, from.SecretKeyRef.Optional)
		case from.ConfigMapKeyRef != nil:
			add(catalog.RefConfigMap, from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Optional)
		}
	}
	for _, e := range from {
		switch {
		case e.SecretRef != nil:
			add(catalog.RefSecret, e.SecretRef.Name, "", e.SecretRef.Optional)
		case e.ConfigMapRef != nil:
			add(catalog.RefConfigMap, e.ConfigMapRef.Name, "", e.ConfigMapRef.Optional)
		}
	}
	return refs
}

// volumeRefs are Secrets and ConfigMaps that the pods mount as volumes.
func volumeRefs(server *mcpv1.MCPServer) []catalog.Ref {
	w := server.Spec.Workload
	if w == nil {
		return nil
	}
	var refs []catalog.Ref
	for _, v := range w.Volumes {
		switch {
		case v.Secret != nil:
			refs = append(refs, catalog.Ref{Kind: catalog.RefSecret, Name: v.Secret.SecretName, Optional: v.Secret.Optional != nil && *v.Secret.Optional})
		case v.ConfigMap != nil:
			refs = append(refs, catalog.Ref{Kind: catalog.RefConfigMap, Name: v.ConfigMap.Name, Optional: v.ConfigMap.Optional != nil && *v.ConfigMap.Optional})
		}
	}
	return refs
}

// envDigest is a keyed digest of what envRefs name; empty without them.
func (s *serverScope) envDigest() string {
	refs := catalog.SortRefs(envRefs(s.server))
	if len(refs) == 0 {
		return ""
	}
	if s.deployment != nil && slices.ContainsFunc(refs, s.valueUnknown) {
		// A Secret that is deleted under running pods is no reason to replace
		// them by pods that cannot start.
		if present := s.deployment.Spec.Template.Annotations[mcpv1.AnnotationEnv]; present != "" {
			return present
		}
	}
	return resources.Hash(s.versions(refs))
}

// valueUnknown: what ref names cannot be read, or is not there although it is
// needed.
func (s *serverScope) valueUnknown(ref catalog.Ref) bool {
	state := s.refs[references.ID{Kind: ref.Kind, Namespace: s.key.Namespace, Name: ref.Name}]
	if state.Forbidden {
		return true
	}
	return !ref.Optional && (!state.Found || (ref.Key != "" && !state.Has(ref.Key)))
}

// versions are the keyed digests of the values that refs name, in order.
func (s *serverScope) versions(refs []catalog.Ref) []any {
	out := make([]any, 0, len(refs))
	for _, ref := range refs {
		state := s.refs[references.ID{Kind: ref.Kind, Namespace: s.key.Namespace, Name: ref.Name}]
		if ref.Key == "" {
			out = append(out, state.Digests)
		} else {
			out = append(out, state.Digests[ref.Key])
		}
	}
	return out
}

// credentialsChanged reports, once, that a mounted Secret or ConfigMap changed
// while the operator watched.
func (s *serverScope) credentialsChanged() bool {
	now := resources.Hash(s.versions(s.catalog.Refs))
	names := resources.Hash(s.catalog.Refs)
	before := s.memory.refs
	s.memory.refs = names + now
	// Other names are another catalog, which is poked for itself.
	return len(before) == len(names)+len(now) && before[:len(names)] == names && before != s.memory.refs
}

// refProblem tells what is wrong with ref, or returns empty strings.
func (s *serverScope) refProblem(ref catalog.Ref) (reason, message string) {
	if ref.Optional {
		return "", ""
	}
	state := s.refs[references.ID{Kind: ref.Kind, Namespace: s.key.Namespace, Name: ref.Name}]
	secret := ref.Kind == catalog.RefSecret
	switch {
	case state.Forbidden:
		return mcpv1.ReasonForbidden, mayNot("get", strings.ToLower(string(ref.Kind))+"s", ref.Name)
	case !state.Found && secret:
		return mcpv1.ReasonSecretNotFound, fmt.Sprintf("Secret %s does not exist. Create it in namespace %s.", ref.Name, s.key.Namespace)
	case !state.Found:
		return mcpv1.ReasonConfigMapNotFound, fmt.Sprintf("ConfigMap %s does not exist. Create it in namespace %s.", ref.Name, s.key.Namespace)
	case ref.Key != "" && !state.Has(ref.Key) && secret:
		return mcpv1.ReasonSecretKeyNotFound, fmt.Sprintf("Secret %s has no key %s. Add it.", ref.Name, ref.Key)
	case ref.Key != "" && !state.Has(ref.Key):
		return mcpv1.ReasonConfigMapKeyNotFound, fmt.Sprintf("ConfigMap %s has no key %s. Add it.", ref.Name, ref.Key)
	default:
		return "", ""
	}
}

// readValues reads the values of refs for the probe. They are kept nowhere
// but in the prober's memory. What is missing is left out.
func (r *MCPServerReconciler) readValues(ctx context.Context, namespace string, refs []catalog.Ref) (map[catalog.Ref][]byte, error) {
	values := map[catalog.Ref][]byte{}
	for _, ref := range refs {
		value, ok, err := dialing.Read(ctx, r.APIReader, namespace, ref)
		if err := ignoreMissing(err); err != nil {
			return nil, err
		}
		if ok {
			values[ref] = value
		}
	}
	return values, nil
}
