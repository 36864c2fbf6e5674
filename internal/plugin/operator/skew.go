// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// Skew says what differs between a plugin and the operator of a namespace;
// empty when they are of one minor version, or that cannot be told.
func Skew(plugin, operator string) string {
	p, err := version.ParseSemantic(plugin)
	if err != nil {
		return ""
	}
	o, err := version.ParseSemantic(operator)
	if err != nil || (p.Major() == o.Major() && p.Minor() == o.Minor()) {
		return ""
	}
	if p.LessThan(o) {
		return fmt.Sprintf("This plugin is %s, and the operator %s, which is newer: what it knows more is not shown. Install the plugin of that version.", plugin, operator)
	}
	return fmt.Sprintf("This plugin is %s, and the operator %s, which is older: it may lack what the plugin shows. Upgrade the operator (docs/upgrades.md), or use the plugin of that version.", plugin, operator)
}
