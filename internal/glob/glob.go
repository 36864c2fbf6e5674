// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package glob matches names against patterns: '*' is any run of characters,
// '?' is one. Nothing else is special.
package glob

// Any reports whether one of patterns matches name.
func Any(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}

// Match reports whether pattern matches the whole of name. It takes time in
// proportion to the product of both lengths at worst.
func Match(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			// What the last star took was too little.
			from++
			p, n = star+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
