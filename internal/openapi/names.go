// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcp"
)

// clean makes a name of text: runs of characters that clients do not take
// become one underscore; a long one ends in a part of its digest.
func clean(text string) string {
	var b strings.Builder
	gap := false
	for _, c := range []byte(text) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteByte(c)
			continue
		}
		gap = true
	}
	out := b.String()
	if len(out) > mcp.MaxClientToolName {
		return suffixed(out, text)
	}
	return out
}

// suffixed is name with the digest of id behind it, within what clients take.
func suffixed(name, id string) string {
	sum := sha256.Sum256([]byte(id))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:min(len(name), mcp.MaxClientToolName-len(suffix))], "_-") + suffix
}

// nameAll names operations by their ids, or by method and path. Of those that
// would have one name, one whose id is that very name keeps it, and all others
// get a digest of method and path: so a new operation of the document never
// takes the name of another.
func nameAll(operations []*operation) {
	byName := map[string][]*operation{}
	for _, o := range operations {
		o.name = clean(o.ID)
		if o.name == "" {
			o.name = clean(strings.ToLower(o.method) + o.path)
		}
		byName[o.name] = append(byName[o.name], o)
	}
	for name, same := range byName {
		if len(same) == 1 {
			continue
		}
		exact := slices.Collect(func(yield func(*operation) bool) {
			for _, o := range same {
				if o.ID == name && !yield(o) {
					return
				}
			}
		})
		for _, o := range same {
			if len(exact) != 1 || o != exact[0] {
				o.name = suffixed(o.name, o.method+" "+o.path)
			}
		}
	}
}
