// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Principal is who calls, as expressions see it.
type Principal struct {
	// Kind is JWT, APIKey, ServiceAccount or Anonymous.
	Kind    string
	Subject string
	Scopes  []string
	Claims  map[string]any
}

// Anonymous is the principal of a caller who gave no credential.
func Anonymous() Principal { return Principal{Kind: "Anonymous"} }

// Var gives p as the variable "principal". Absent keys, in its claims too,
// read as null; has() tells them from present ones.
func (p Principal) Var() any {
	scopes := p.Scopes
	if scopes == nil {
		scopes = []string{}
	}
	claims := p.Claims
	if claims == nil {
		claims = map[string]any{}
	}
	return newLenientMap(map[string]any{
		"kind": p.Kind, "subject": p.Subject, "scopes": scopes, "claims": claims,
	})
}

// lenientMap is a map whose absent keys read as null. It is deliberately no
// traits.Mapper: CEL asks an Indexer for presence and for the value apart,
// while a Mapper's Find answers both at once.
type lenientMap struct {
	mapWithoutFind
	inner traits.Mapper
}

type mapWithoutFind interface {
	ref.Val
	traits.Container
	traits.Iterable
	traits.Sizer
}

func newLenientMap(m map[string]any) *lenientMap {
	inner := types.NewStringInterfaceMap(types.DefaultTypeAdapter, m)
	return &lenientMap{mapWithoutFind: inner, inner: inner}
}

// IsSet implements traits.FieldTester: what has() asks.
func (m *lenientMap) IsSet(key ref.Val) ref.Val { return m.inner.Contains(key) }

// Equal implements ref.Val.
func (m *lenientMap) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*lenientMap); ok {
		other = o.inner
	}
	return m.inner.Equal(other)
}

// Get implements traits.Indexer.
func (m *lenientMap) Get(key ref.Val) ref.Val {
	value, found := m.inner.Find(key)
	if !found {
		if types.IsError(value) {
			return value
		}
		return types.NullValue
	}
	if nested, ok := value.Value().(map[string]any); ok {
		return newLenientMap(nested)
	}
	return value
}
