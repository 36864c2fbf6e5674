// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/plugin/env"
	"github.com/espalier-dev/espalier/internal/plugin/operator"
	"github.com/espalier-dev/espalier/internal/version"
)

// Summary of rows: how many are in which health, how many tools were proved,
// and what keeps that true.
func Summary(rows []Row, state operator.State) []string {
	numbers := map[Health]int{}
	tools := 0
	var namespaces []string
	for _, row := range rows {
		numbers[row.Health]++
		namespaces = append(namespaces, row.Server.Namespace)
		if n := row.Server.Status.ToolCount; n != nil && row.Health != Unknown {
			tools += int(*n)
		}
	}
	var parts []string
	for _, health := range healths {
		if n := numbers[health]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, inWords[health]))
		}
	}
	lines := []string{fmt.Sprintf("%s: %s; %s proved.", env.Count(len(rows), "server"), strings.Join(parts, ", "), env.Count(tools, "tool"))}
	return append(lines, Told(state, namespaces)...)
}

// Told is what is to be known of the operators of namespaces.
func Told(state operator.State, namespaces []string) []string {
	var lines []string
	for _, life := range state.Lives(namespaces) {
		lines = append(lines, life.String())
		if skew := operator.Skew(version.Version, state.Versions[life.Namespace]); skew != "" && !slices.Contains(lines, skew) {
			lines = append(lines, skew)
		}
	}
	return lines
}
