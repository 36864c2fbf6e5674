// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

// conditions of a group of kinds, as reasons.yaml has them.
type conditions []struct {
	Condition string   `json:"condition"`
	Says      string   `json:"says"`
	Reasons   []reason `json:"reasons"`
}

type reason struct {
	Status string   `json:"status"`
	Reason string   `json:"reason"`
	Only   []string `json:"only,omitempty"`
	Means  string   `json:"means"`
	Do     string   `json:"do"`
}

// registrations is the group of the kinds that are served.
const registrations = "registration"

func loadReasons(file string) (map[string]conditions, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out map[string]conditions
	if err := yaml.UnmarshalStrict(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

// conditionTables are the tables of all conditions of kind.
func conditionTables(groups map[string]conditions, kind string) string {
	all, ok := groups[kind]
	if !ok {
		all = groups[registrations]
	}
	var out strings.Builder
	for _, c := range all {
		var rows [][]string
		for _, r := range c.Reasons {
			if len(r.Only) == 0 || slices.Contains(r.Only, kind) {
				rows = append(rows, []string{r.Status, page.Code(r.Reason), oneLine(r.Means), oneLine(r.Do)})
			}
		}
		fmt.Fprintf(&out, "### %s\n\n%s\n\n%s\n", c.Condition, c.Says, page.Table([]string{"status", "reason", "means", "what to do"}, rows))
	}
	return out.String()
}

// oneLine keeps Markdown, and a table's row whole.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
