// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/serverconfig"
)

// mergeExtensions joins what all sources declare. Equal declarations of one
// name are one; unequal ones hide the name, since each source could be served
// in a way that the other does not mean. A declaration that is no object is
// unequal to every other.
func mergeExtensions(declared []serverconfig.Extension) (merged json.RawMessage, hidden []string) {
	first := map[string]any{}
	raw := map[string]json.RawMessage{}
	clash := map[string]bool{}
	for _, d := range declared {
		value, err := wire.Decode(d.Settings)
		_, object := value.(map[string]any)
		before, twice := first[d.Name]
		if err != nil || !object || twice && !reflect.DeepEqual(before, value) {
			clash[d.Name] = true
		}
		if !twice {
			first[d.Name], raw[d.Name] = value, d.Settings
		}
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if clash[name] {
			continue
		}
		if merged == nil {
			merged = json.RawMessage{'{'}
		} else {
			merged = append(merged, ',')
		}
		merged = append(wire.AppendString(merged, name), ':')
		merged = append(merged, compact(raw[name])...)
	}
	if merged != nil {
		merged = append(merged, '}')
	}
	return merged, slices.Sorted(maps.Keys(clash))
}

// appendExtensions writes the capability; both eras have it, or ignore it.
func (s *Snapshot) appendExtensions(dst []byte) []byte {
	if s.extensions == nil {
		return dst
	}
	return wire.AppendField(dst, "extensions", s.extensions)
}
