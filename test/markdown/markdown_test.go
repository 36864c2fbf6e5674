// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package markdown

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const sample = "# A title: `spec.auth`\n" +
	"See [one](a.md#b) and [two](c_(d).md), not `[three](e.md)`.\n" +
	"```yaml MCPTool\na: [b](c)\n```\n" +
	"    [four](f.md)\n" +
	"## A [title](x): spec.auth\n" +
	"<a id=\"here\"></a>\n"

func TestParse(t *testing.T) {
	page, err := Parse("page.md", sample)
	if err != nil {
		t.Fatal(err)
	}
	blocks := []Block{{Info: []string{"yaml", "MCPTool"}, Text: "a: [b](c)\n", Line: 3}}
	if diff := cmp.Diff(blocks, page.Blocks); diff != "" {
		t.Error(diff)
	}
	links := []Link{{"a.md#b", 2}, {"c_(d).md", 2}, {"x", 7}}
	if diff := cmp.Diff(links, page.Links()); diff != "" {
		t.Error(diff)
	}
	anchors := page.Anchors()
	for _, want := range []string{"a-title-specauth", "a-title-specauth-1", "here"} {
		if !anchors[want] {
			t.Errorf("no anchor %s in %v", want, anchors)
		}
	}
	if _, err := Parse("page.md", "```\n"); err == nil {
		t.Error("an open fence is no error")
	}
}

func TestPages(t *testing.T) {
	pages, err := Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(pages, func(p *Page) bool { return p.Path == "docs/architecture.md" }) {
		t.Errorf("%d pages, and docs/architecture.md is none of them", len(pages))
	}
}
