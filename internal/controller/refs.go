// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/catalog"
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
	refs := slices.Concat(catalog.ProbeRefs(s.server), catalog.EnvRefs(s.server), catalog.VolumeRefs(s.server))
	if s.catalog != nil {
		refs = append(refs, s.catalog.Refs...)
	}
	return catalog.SortRefs(refs)
}

// envDigest is a keyed digest of what catalog.EnvRefs name; empty without them.
func (s *serverScope) envDigest() string {
	refs := catalog.SortRefs(catalog.EnvRefs(s.server))
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
	if state.Forbidden {
		return mcpv1.ReasonForbidden, mayNot("get", strings.ToLower(string(ref.Kind))+"s", ref.Name)
	}
	return ref.Missing(s.key.Namespace, state.Found, state.Has(ref.Key))
}

// readValues reads the values of refs for the probe. They are kept nowhere
// but in the prober's memory. What is missing is left out.
func (r *MCPServerReconciler) readValues(ctx context.Context, namespace string, refs []catalog.Ref) (map[catalog.Ref][]byte, error) {
	values := map[catalog.Ref][]byte{}
	for _, ref := range refs {
		name := client.ObjectKey{Namespace: namespace, Name: ref.Name}
		var value []byte
		var ok bool
		var err error
		if ref.Kind == catalog.RefSecret {
			var secret corev1.Secret
			err = r.APIReader.Get(ctx, name, &secret)
			value, ok = secret.Data[ref.Key]
		} else {
			var cm corev1.ConfigMap
			err = r.APIReader.Get(ctx, name, &cm)
			if value, ok = cm.BinaryData[ref.Key]; !ok {
				var text string
				text, ok = cm.Data[ref.Key]
				value = []byte(text)
			}
		}
		if err := ignoreMissing(err); err != nil {
			return nil, err
		}
		if ok {
			values[ref] = value
		}
	}
	return values, nil
}
