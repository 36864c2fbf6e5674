// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const before = `Words of a person.

<!-- generated: a b -->
old
<!-- end -->

More words.
`

func TestFill(t *testing.T) {
	after, err := Fill(before, func(words []string) (string, error) { return strings.Join(words, "+"), nil })
	if err != nil {
		t.Fatal(err)
	}
	want := "Words of a person.\n\n<!-- generated: a b -->\n\na+b\n\n<!-- end -->\n\nMore words.\n"
	if after != want {
		t.Errorf("%q", after)
	}
	again, err := Fill(after, func(words []string) (string, error) { return Section(after, words), nil })
	if err != nil || again != after {
		t.Errorf("%v: %q", err, again)
	}
	if _, err := Fill("<!-- generated: a -->\n", func([]string) (string, error) { return "", nil }); err == nil {
		t.Error("a section without an end is no error")
	}
}

func TestCell(t *testing.T) {
	if got, want := Cell("a|b\n<c> *d*"), `a\|b &lt;c&gt; \*d\*`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCheckFlags(t *testing.T) {
	fs := flag.NewFlagSet("program", flag.ContinueOnError)
	fs.Int("burst", 4, "Requests at once.")
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte(before+"<!-- generated: flags program -->\n<!-- end -->\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func(update, want bool) {
		t.Helper()
		current, err := CheckFlags(file, "program", fs, update)
		if err != nil || current != want {
			t.Errorf("current: %v, %v", current, err)
		}
	}
	check(false, false)
	check(true, true)
	check(false, true)
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "| `--burst` | `4` | Requests at once. |") {
		t.Errorf("%v: %s", err, text)
	}
	if current, _ := CheckFlags(file, "another", fs, false); current {
		t.Error("a page without the section is current")
	}
}
