// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"strings"
	"testing"
	"unicode"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// FuzzOdd: whatever a definition is, what is odd in it is said in one line.
func FuzzOdd(f *testing.F) {
	f.Add([]byte(`{"name":"a\nb","inputSchema":{"type":"object","properties":{"\u001b":{}},"oneOf":5},"outputSchema":{"type":[]}}`))
	f.Add([]byte(`{"inputSchema":{"type":"object","properties":{"a":{"x-mcp-header":"\n"}}}}`))
	f.Add([]byte(`{"name":5}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o := &oddities{era: mcpprobe.EraLegacy}
		o.tool(raw)
		for _, one := range o.all(&mcpprobe.Report{}) {
			if strings.ContainsFunc(one.Name+one.Detail, unicode.IsControl) {
				t.Errorf("said %q of %q", one.Detail, one.Name)
			}
		}
	})
}
