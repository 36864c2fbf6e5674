// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Render turns a typed object into what is applied: only the fields that are
// meant, without the zero values that Go types add.
func Render(obj runtime.Object) (*metav1.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("render %T: %w", obj, err)
	}
	delete(content, "status")
	dropNoise(content)
	return &metav1.Unstructured{Object: content}, nil
}

// dropNoise removes what encoding a Go struct adds and nobody means: nulls,
// and empty objects at keys where an empty object says nothing.
func dropNoise(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			dropNoise(value)
			if m, ok := value.(map[string]any); ok && len(m) == 0 && (key == "resources" || key == "strategy") {
				delete(v, key)
			}
		}
	case []any:
		for _, item := range v {
			dropNoise(item)
		}
	}
}

// Hash of what v encodes to. Go's encoding sorts map keys.
func Hash(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		// Only types of the Kubernetes API are hashed, and all of them encode.
		panic(fmt.Sprintf("hash %T: %v", v, err))
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16])
}

// Covers reports whether live has all that want has: the same scalars, each
// key of an object, and each element of a list, which are matched by their
// natural key where they have one. What live has beyond (defaults, fields of
// others) does not count.
func Covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := live.(map[string]any)
		if !ok {
			return len(want) == 0 && live == nil
		}
		for key, value := range want {
			if !Covers(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, ok := live.([]any)
		if !ok {
			return len(want) == 0 && live == nil
		}
		return coversList(have, want)
	default:
		return equalScalars(live, want)
	}
}

// naturalKeys are the fields that tell elements of Kubernetes lists apart, in
// the order in which they are tried.
var naturalKeys = []string{"uid", "containerPort", "mountPath", "name", "conditionType", "key"}

func coversList(live, want []any) bool {
	if len(want) == 0 {
		return len(live) == 0
	}
	if key := listKey(want); key != "" {
		byKey := make(map[string]any, len(live))
		for _, item := range live {
			if m, ok := item.(map[string]any); ok {
				byKey[fmt.Sprint(m[key])] = m
			}
		}
		for _, item := range want {
			found, ok := byKey[fmt.Sprint(item.(map[string]any)[key])]
			if !ok || !Covers(found, item) {
				return false
			}
		}
		return true
	}
	if len(live) != len(want) {
		return false
	}
	for i := range want {
		if !Covers(live[i], want[i]) {
			return false
		}
	}
	return true
}

// listKey is the key by which all elements of list are unique, or empty.
func listKey(list []any) string {
	for _, key := range naturalKeys {
		seen := map[string]bool{}
		for _, item := range list {
			m, ok := item.(map[string]any)
			if !ok {
				return ""
			}
			if value, ok := m[key]; ok {
				seen[fmt.Sprint(value)] = true
			}
		}
		if len(seen) == len(list) {
			return key
		}
	}
	return ""
}

func equalScalars(a, b any) bool {
	if a == b {
		return true
	}
	// Numbers come as int64 from a typed object and as float64 from JSON.
	x, okX := number(a)
	y, okY := number(b)
	return okX && okY && x == y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	default:
		return 0, false
	}
}
