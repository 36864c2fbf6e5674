// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"reflect"

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
	inner traits.Mapper
}

func newLenientMap(m map[string]any) *lenientMap {
	return &lenientMap{inner: types.NewStringInterfaceMap(types.DefaultTypeAdapter, m)}
}

func (m *lenientMap) ConvertToNative(t reflect.Type) (any, error) { return m.inner.ConvertToNative(t) }
func (m *lenientMap) ConvertToType(t ref.Type) ref.Val            { return m.inner.ConvertToType(t) }
func (m *lenientMap) Type() ref.Type                              { return types.MapType }
func (m *lenientMap) Value() any                                  { return m.inner.Value() }
func (m *lenientMap) Contains(key ref.Val) ref.Val                { return m.inner.Contains(key) }
func (m *lenientMap) IsSet(key ref.Val) ref.Val                   { return m.inner.Contains(key) }
func (m *lenientMap) Iterator() traits.Iterator                   { return m.inner.Iterator() }
func (m *lenientMap) Size() ref.Val                               { return m.inner.Size() }

func (m *lenientMap) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*lenientMap); ok {
		other = o.inner
	}
	return m.inner.Equal(other)
}

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
