// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"path"
	"slices"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// RefKind is the kind of object that a reference names.
type RefKind string

// Kinds of references.
const (
	RefSecret    RefKind = "Secret"
	RefConfigMap RefKind = "ConfigMap"
)

// Ref names one key of a Secret or ConfigMap in the object's own namespace;
// without a key it is the whole object.
type Ref struct {
	Kind RefKind
	Name string
	Key  string
	// Optional references do not block anything when they are missing.
	Optional bool
}

// Path of the key below the credentials folder of a pod.
func (r Ref) Path() string {
	folder := serverconfig.CredentialsSecrets
	if r.Kind == RefConfigMap {
		folder = serverconfig.CredentialsConfigMaps
	}
	return path.Join(folder, r.Name, r.Key)
}

// CompareRefs orders references by kind, name and key.
func CompareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
}

// SortRefs sorts refs and drops repetitions; a reference that is needed once
// is not optional.
func SortRefs(refs []Ref) []Ref {
	slices.SortFunc(refs, func(a, b Ref) int {
		return cmp.Or(CompareRefs(a, b), compareBool(a.Optional, b.Optional))
	})
	return slices.CompactFunc(refs, func(a, b Ref) bool { return CompareRefs(a, b) == 0 })
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// HeaderRefs are the references of headers.
func HeaderRefs(headers []mcpv1.Header) []Ref {
	var refs []Ref
	for _, h := range headers {
		if r, ok := keyRef(h.SecretKeyRef, h.ConfigMapKeyRef); ok {
			refs = append(refs, r)
		}
	}
	return refs
}

// TLSRefs are the references of t.
func TLSRefs(t *mcpv1.ClientTLS) []Ref {
	if t == nil {
		return nil
	}
	var refs []Ref
	if t.CA != nil {
		if r, ok := keyRef(t.CA.SecretKeyRef, t.CA.ConfigMapKeyRef); ok {
			refs = append(refs, r)
		}
	}
	if c := t.ClientCertificateRef; c != nil {
		refs = append(refs,
			Ref{Kind: RefSecret, Name: c.Name, Key: keyCert},
			Ref{Kind: RefSecret, Name: c.Name, Key: keyKey})
	}
	return refs
}

// ConnectionRefs are the references of c.
func ConnectionRefs(c *mcpv1.Connection) []Ref {
	if c == nil {
		return nil
	}
	return slices.Concat(HeaderRefs(c.Headers), TLSRefs(c.TLS), OutboundRefs(c.Auth))
}

func keyRef(secret *mcpv1.SecretKeyRef, configMap *mcpv1.ConfigMapKeyRef) (Ref, bool) {
	switch {
	case secret != nil:
		return Ref{Kind: RefSecret, Name: secret.Name, Key: secret.Key}, true
	case configMap != nil:
		return Ref{Kind: RefConfigMap, Name: configMap.Name, Key: configMap.Key}, true
	default:
		return Ref{}, false
	}
}
