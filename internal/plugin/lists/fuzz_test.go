// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"strings"
	"testing"
	"unicode"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
)

// FuzzEntries: whatever a definition holds, its row is fit for a terminal.
func FuzzEntries(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a\u001b[2J","inputSchema":{"properties":{"b\n":{"type":["string",1]}},"required":[1,"b\n"]},"outputSchema":{},"annotations":{"readOnlyHint":"yes"}}`,
		`{"uri":"x:/","mimeType":"a\tb","title":"\u202e"}`, `{"arguments":[{"name":"a","required":true},{}]}`, `{"inputSchema":[]}`, `null`, `{"name":1}`,
	} {
		f.Add([]byte(seed), "a\u009b")
	}
	f.Fuzz(func(t *testing.T, raw []byte, id string) {
		list := []client.Entry{{ID: id, Definition: raw}}
		for _, k := range []kind{tools, resources, prompts} {
			for _, e := range k.of(&client.Lists{Tools: list, Resources: list, Templates: list, Prompts: list}) {
				for _, cell := range append(k.row(&e), k.wideRow(&e)...) {
					if strings.ContainsFunc(cell, unicode.IsControl) {
						t.Errorf("%s: %q", k.name, cell)
					}
				}
			}
		}
	})
}
