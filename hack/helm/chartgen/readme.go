// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
)

//go:embed readme.md.tmpl
var readme string

// writeReadme writes the introduction of readme.md.tmpl and the table of values.
func writeReadme(file string, values *value) error {
	var out strings.Builder
	out.WriteString(readme)
	section := ""
	for _, v := range values.leaves() {
		if v.section != section {
			section = v.section
			fmt.Fprintf(&out, "\n### %s\n\n| value | what | default |\n|---|---|---|\n", section)
		}
		fallback, err := json.Marshal(v.fallback)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "| `%s` | %s | `%s` |\n", v.path, cell(v.description), cell(string(fallback)))
	}
	return write(file, out.String())
}

// cell of a table: a bar would end it.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
