// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// TestLine: what a peer says stays on its line and moves no cursor.
func TestLine(t *testing.T) {
	tests := []struct{ in, line, lines string }{
		{"plain", "plain", "plain"},
		{" two\n\tlines\r\n", "two lines", " two\n\tlines\n"},
		{"\x1b[2Jgone", `\x1b[2Jgone`, `\x1b[2Jgone`},
		{"a\u202eb\u2066c", `a\u202eb\u2066c`, `a\u202eb\u2066c`},
		{"\xff日本\r", `\xff日本`, `\xff日本\x0d`},
		{"no\u00a0break", "no break", `no\u00a0break`},
	}
	for _, test := range tests {
		if got := Line(test.in); got != test.line {
			t.Errorf("Line(%q) = %q, want %q", test.in, got, test.line)
		}
		if got := Lines(test.in); got != test.lines {
			t.Errorf("Lines(%q) = %q, want %q", test.in, got, test.lines)
		}
	}
}

// TestTable: columns are as wide as their widest cell, in characters, and
// nothing is cut where there is no terminal.
func TestTable(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	New(streams).Table([]string{"A", "B", "C"}, [][]string{{"日本", "b", "a long cell that is not cut"}, {"a", "", ""}})
	want := "A    B   C\n日本   b   a long cell that is not cut\na\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{{"abcdef", 6, "abcdef"}, {"abcdef", 5, "abcd…"}, {"日本語", 2, "日…"}, {"abc", 0, "abc"}} {
		if got := Cut(test.text, test.width); got != test.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
