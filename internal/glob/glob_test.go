// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b", true}, {"a", "a", true}, {"a", "ab", false},
		{"get_*", "get_x", true}, {"get_*", "get_", true}, {"get_*", "got_x", false}, {"?", "a", true}, {"?", "", false},
		{"a?c", "abc", true}, {"*a*b", "xaybzb", true}, {"*a*b", "xaybz", false}, {"**", "x", true}, {"*x", "xxx", true},
		{"[ab]", "a", false}, {"a.c", "abc", false},
	} {
		if got := Match(test.pattern, test.name); got != test.want {
			t.Errorf("Match(%q, %q) is %t", test.pattern, test.name, got)
		}
	}
	if Match(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 5000)) {
		t.Error("matched")
	}
	if !Any([]string{"x", "a*"}, "ab") || Any(nil, "ab") {
		t.Error("Any")
	}
}
