// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"strings"
	"testing"
	"unicode"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// FuzzOdd: whatever a definition holds, what is odd in it is told in words fit
// for a terminal.
func FuzzOdd(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a\u001b[2J","inputSchema":{"type":"object","properties":{"b\n":{"type":"\u001b"}},"anyOf":[]},"outputSchema":[]}`,
		`{"name":"a","inputSchema":{"$ref":"#"}}`, `{"name":1}`, `{}`, `{"inputSchema":"{","outputSchema":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := &oddities{era: mcpprobe.EraLegacy}
		o.tool(raw)
		for _, one := range o.all(&mcpprobe.Report{}) {
			if strings.ContainsFunc(one.Name+one.Detail, unicode.IsControl) {
				t.Errorf("%q", one)
			}
		}
	})
}
