// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"path"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"a", "", false}, {"*", "", true}, {"*", "anything/at all", true},
		{"get_*", "get_x", true}, {"get_*", "get_", true}, {"get_*", "xget_", false},
		{"*_x", "a_x", true}, {"*_x", "a_x_x", true}, {"*_x", "a_xy", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"a?c", "aéc", true},
		{"*a*b*", "xaxbx", true}, {"*a*b*", "xbxax", false}, {"docs://*", "docs://a/b", true},
		{"a.b", "axb", false}, {"[a]", "a", false}, {"[a]", "[a]", true}, {"**", "x", true},
	}
	for _, test := range tests {
		if got := Match(test.pattern, test.text); got != test.want {
			t.Errorf("Match(%q, %q) is %v", test.pattern, test.text, got)
		}
	}
	if !Any([]string{"x", "a*"}, "abc") || Any([]string{"x"}, "abc") || Any(nil, "a") {
		t.Error("Any is not one of")
	}
}

// TestLong: a pattern of many stars must not take for ever.
func TestLong(t *testing.T) {
	if Match(strings.Repeat("*a", 60)+"b", strings.Repeat("a", 10000)) {
		t.Error("matched")
	}
}

// FuzzMatch: where no slash and no bracket stands, it is path.Match.
func FuzzMatch(f *testing.F) {
	f.Add("a*b?", "axxbc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		got := Match(pattern, text)
		if strings.ContainsAny(pattern, `/[]\`) || strings.Contains(text, "/") || strings.ContainsFunc(pattern+text, func(r rune) bool { return r > 0x7e }) {
			return
		}
		if want, err := path.Match(pattern, text); err != nil || want != got {
			t.Errorf("Match(%q, %q) is %v, path.Match says %v, %v", pattern, text, got, want, err)
		}
	})
}
