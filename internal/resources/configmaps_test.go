// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// TestCatalogConfigMaps: what the ConfigMaps hold, put together as the kubelet
// projects them, is the set.
func TestCatalogConfigMaps(t *testing.T) {
	binary := []byte{0x1f, 0x8b, 0xff}
	tests := map[string]struct {
		set   serverconfig.Set
		names []string
	}{
		"text beside its index": {
			serverconfig.Set{Index: []byte("{}"), Parts: [][]byte{[]byte("text")}, Keys: []string{"catalog-0"}},
			[]string{"weather-mcp-catalog"},
		},
		"binary beside its index": {
			serverconfig.Set{Index: []byte("{}"), Parts: [][]byte{binary}, Keys: []string{"catalog-0"}},
			[]string{"weather-mcp-catalog"},
		},
		"shards": {
			serverconfig.Set{Index: []byte("{}"), Parts: [][]byte{binary, {0xfe}, {0xfd}}, Keys: []string{"catalog-0", "catalog-1", "catalog-2"}},
			[]string{"weather-mcp-catalog", "weather-mcp-catalog-1", "weather-mcp-catalog-2", "weather-mcp-catalog-3"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var names []string
			projected := map[string]string{}
			for _, cm := range CatalogConfigMaps(server(t, `{}`), &test.set) {
				names = append(names, cm.Name)
				for key, value := range cm.Data {
					projected[key] = value
				}
				for key, value := range cm.BinaryData {
					projected[key] = string(value)
				}
			}
			if diff := cmp.Diff(test.names, names); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			want := map[string]string{serverconfig.IndexKey: "{}"}
			for i, key := range test.set.Keys {
				want[key] = string(test.set.Parts[i])
			}
			if diff := cmp.Diff(want, projected); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCatalogVolumeHasAllShards: a catalog that grows needs no new template.
func TestCatalogVolumeHasAllShards(t *testing.T) {
	s := server(t, `{}`)
	sources := catalogVolume(s).Projected.Sources
	if len(sources) != serverconfig.MaxShards+1 {
		t.Fatalf("%d sources", len(sources))
	}
	for i, source := range sources {
		if source.ConfigMap.Name != CatalogName(s, i) || source.ConfigMap.Optional == nil || !*source.ConfigMap.Optional {
			t.Errorf("source %d is %+v", i, source.ConfigMap)
		}
	}
}
