// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	mcpv1 "github.com/espalier-dev/espalier/api/v1alpha1"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// CatalogConfigMaps carry set: one ConfigMap with index and payload, or the
// index alone and a shard per part.
func CatalogConfigMaps(server *mcpv1.MCPServer, set *serverconfig.Set) []*corev1.ConfigMap {
	index := catalogConfigMap(server, 0)
	index.Data = map[string]string{serverconfig.IndexKey: string(set.Index)}
	out := []*corev1.ConfigMap{index}
	for i, part := range set.Parts {
		target := index
		if len(set.Parts) > 1 {
			target = catalogConfigMap(server, i+1)
			out = append(out, target)
		}
		if utf8.Valid(part) {
			if target.Data == nil {
				target.Data = map[string]string{}
			}
			target.Data[set.Keys[i]] = string(part)
		} else {
			target.BinaryData = map[string][]byte{set.Keys[i]: part}
		}
	}
	return out
}

func catalogConfigMap(server *mcpv1.MCPServer, shard int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: objectMeta(server, CatalogName(server, shard)),
	}
}
