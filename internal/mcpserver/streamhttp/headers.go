// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package streamhttp

import "strings"

// isJSON reports whether a Content-Type is JSON, whatever its case and its
// parameters.
func isJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(base), "application/json")
}

// accepts reports whether the Accept headers let a media type pass. None at
// all accepts everything, as HTTP has it.
func accepts(values []string, mediaType string) bool {
	if len(values) == 0 {
		return true
	}
	group, _, _ := strings.Cut(mediaType, "/")
	named := false
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			base, parameters, _ := strings.Cut(part, ";")
			base = strings.TrimSpace(base)
			if base == "" {
				continue
			}
			named = true
			matches := base == "*/*" || strings.EqualFold(base, mediaType) ||
				len(base) == len(group)+2 && strings.EqualFold(base[:len(group)], group) && base[len(group):] == "/*"
			if matches && !refusedByQ(parameters) {
				return true
			}
		}
	}
	return !named
}

// refusedByQ reports whether parameters hold q=0.
func refusedByQ(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(name, "q") && strings.Trim(value, "0.") == "" && value != "" {
			return true
		}
	}
	return false
}
