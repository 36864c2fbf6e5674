// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// equal compares API values by meaning: empty and absent are the same.
func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
