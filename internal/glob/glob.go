// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package glob matches the globs of access rules and limits: '*' is any run
// of characters, '?' one, and nothing else is special. Unlike path.Match, a
// '*' passes over slashes: URIs are matched too.
package glob

import "unicode/utf8"

// Match reports whether pattern matches all of text. It takes no more than
// the product of their lengths in time.
func Match(pattern, text string) bool {
	// star is where to go on when what follows the last '*' does not match;
	// that '*' then takes one character more.
	p, t, star, mark := 0, 0, -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			_, size := utf8.DecodeRuneInString(text[t:])
			p++
			t += size
		case p < len(pattern) && pattern[p] == text[t]:
			p++
			t++
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Any reports whether one of patterns matches text.
func Any(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if Match(pattern, text) {
			return true
		}
	}
	return false
}
