// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxDepth of a result. JSON decoders of clients give up at about the same.
const maxDepth = 200

const (
	// maxElements and maxResultBytes bound a result: lists and texts that are
	// shared inside CEL (a list added to itself thirty times) are not in JSON.
	maxElements    = 1_000_000
	maxResultBytes = 64 << 20
)

// converter gives CEL values as plain Go values that JSON can hold.
type converter struct {
	elements, bytes uint64
}

func (c *converter) spend(elements, bytes uint64) error {
	c.elements += elements
	c.bytes += bytes
	if c.elements > maxElements || c.bytes > maxResultBytes {
		return errors.New("the result is too large")
	}
	return nil
}

func (c *converter) toNative(v ref.Val, depth int) (any, error) {
	if err := c.spend(1, textSize(v)); err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("the result is nested deeper than %d", maxDepth)
	}
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			return nil, nil
		}
		return c.toNative(v.GetValue(), depth)
	case *lenientMap:
		return c.toNative(v.inner, depth)
	case traits.Mapper:
		return c.mapToNative(v, depth)
	case traits.Lister:
		return c.listToNative(v, depth)
	}
	return scalarToNative(v)
}

func scalarToNative(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("the result holds a number that JSON cannot write")
		}
		return float64(v), nil
	case types.String:
		return strings.ToValidUTF8(string(v), "\uFFFD"), nil
	case types.Bytes:
		return []byte(v), nil
	case types.Timestamp:
		return v.UTC().Format(time.RFC3339Nano), nil
	case types.Duration:
		return v.ConvertToType(types.StringType).Value(), nil
	}
	return nil, fmt.Errorf("the result holds a value of type %s, which JSON has not", v.Type().TypeName())
}

func (c *converter) listToNative(list traits.Lister, depth int) (any, error) {
	size, _ := list.Size().(types.Int)
	if size < 0 || size > maxElements {
		return nil, errors.New("the result is too large")
	}
	out := make([]any, 0, int(size))
	for it := list.Iterator(); it.HasNext() == types.True; {
		element, err := c.toNative(it.Next(), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, element)
	}
	return out, nil
}

func (c *converter) mapToNative(m traits.Mapper, depth int) (any, error) {
	size, _ := m.Size().(types.Int)
	out := make(map[string]any, int(size))
	for it := m.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.ConvertToType(types.StringType).(types.String)
		if !ok {
			return nil, errors.New("the result holds a map key that is no string")
		}
		value, err := c.toNative(m.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		out[string(name)] = value
	}
	return out, nil
}

// isKind reports whether a plain value is of the wanted kind.
func isKind(want Kind, value any) bool {
	switch value := value.(type) {
	case []any:
		return want == Any || want == ScalarOrList && allScalar(value)
	case string:
		return want.has(aString)
	case bool:
		return want.has(aBool)
	case nil, int64, uint64, float64:
		return want.has(aNumber)
	case []byte:
		return want.has(someBytes)
	case map[string]any:
		return want.has(aMap)
	}
	return false
}

func allScalar(list []any) bool {
	for _, element := range list {
		if !isKind(Scalar, element) {
			return false
		}
	}
	return true
}

func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case []byte:
		return "bytes"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return "a number"
	}
}
