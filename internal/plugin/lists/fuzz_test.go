// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"strings"
	"testing"
	"unicode"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/reach"
)

// FuzzEntry: any definition has a row of one line in each table, and is the same
// as itself.
func FuzzEntry(f *testing.F) {
	f.Add("add", []byte(`{"name":"add","inputSchema":{"properties":{"\n":{"type":"\u001b"}},"required":["\n",1]},"annotations":{"readOnlyHint":1}}`))
	f.Add("\x1b[2J", []byte(`{"inputSchema":true,"arguments":[{"name":"a\u202eb","required":true},{}],"annotations":[]}`))
	f.Add("x", []byte(`{"title":5,"mimeType":"\r"}`))
	f.Fuzz(func(t *testing.T, id string, raw []byte) {
		if !wire.Valid(raw) {
			return // A list of definitions is JSON.
		}
		all := &client.Lists{}
		one := []client.Entry{{ID: id, Name: id, Definition: raw}}
		all.Tools, all.Resources, all.Templates, all.Prompts = one, one, one, one
		for _, k := range []*kind{&tools, &resources, &prompts} {
			list := k.of(all)
			for i := range list {
				for _, cell := range append(k.row(&list[i]), k.wideRow(&list[i])...) {
					if strings.ContainsFunc(cell, unicode.IsControl) {
						t.Errorf("%s: a cell %q", k.name, cell)
					}
				}
			}
			m := merge([]answer{
				{endpoint: &reach.Endpoint{Pod: "a"}, entries: k.of(all)[:1]}, {endpoint: &reach.Endpoint{Pod: "b"}, entries: k.of(all)[:1]},
			})
			if len(m.entries) != 1 || m.entries[0].uneven() {
				t.Errorf("%s: it is not the same as itself: %+v", k.name, m.entries)
			}
		}
	})
}
