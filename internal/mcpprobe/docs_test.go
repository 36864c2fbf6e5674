// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package mcpprobe_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/mcpprobe"
)

// docs/probe.md names each outcome, and names no test that does not exist.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "probe.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, outcome := range mcpprobe.Outcomes {
		if !strings.Contains(string(page), "`"+string(outcome)+"`") {
			t.Errorf("outcome %s is not documented", outcome)
		}
	}
	var tests strings.Builder
	root := filepath.Join("..", "..")
	for _, pattern := range []string{"internal/*/*_test.go", "internal/*/*/*_test.go", "internal/*/*/*/*_test.go", "test/*/*_test.go"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(content)
		}
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") {
			t.Errorf("test %s does not exist", name[1])
		}
	}
	for _, spec := range regexp.MustCompile("e2e \"([^\"]+)\"").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(tests.String(), "It("+strconv.Quote(spec[1])) {
			t.Errorf("e2e %q does not exist", spec[1])
		}
	}
	for _, name := range regexp.MustCompile(`func (TestCase\w+)\(`).FindAllStringSubmatch(tests.String(), -1) {
		if !strings.Contains(string(page), "`"+name[1]+"`") {
			t.Errorf("test %s is not in the table of cases", name[1])
		}
	}
}
