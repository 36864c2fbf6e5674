// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogdocs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	reading "github.com/yuin/goldmark/text"

	"github.com/espalier-dev/espalier/internal/mcpserver/upstream/client"
	"github.com/espalier-dev/espalier/internal/plugin/manifest"
	"github.com/espalier-dev/espalier/internal/plugin/plugintest"
)

func entry(id, definition string) client.Entry {
	return client.Entry{ID: id, Definition: json.RawMessage(definition)}
}

// shop is a catalog with some of each kind.
func shop() *manifest.Manifest {
	return manifest.Of(client.Introduction{Name: "shop", Title: "The shop", Version: "1.2.0", Instructions: "Ask before you buy.\n\nPrices are in EUR:\n- net\n- gross"}, &client.Lists{
		Tools: []client.Entry{
			entry("sell", `{"name":"sell","description":"Sell it.","inputSchema":{"type":"object"}}`),
			entry("buy", `{"name":"buy","title":"Buy","description":"Buy <b>now</b>.\n# Not a heading\n1. not a list","annotations":{"destructiveHint":true,"readOnlyHint":false,"openWorldHint":true},
				"inputSchema":{"type":"object","required":["item","count"],"properties":{
					"item":{"$ref":"#/$defs/item","description":"What to buy."},"count":{"type":"integer","minimum":1,"maximum":9,"default":1},
					"tags":{"type":"array","items":{"type":"string"},"maxItems":3},"mode":{"enum":["fast","cheap|slow"]},
					"until":{"anyOf":[{"type":"string"},{"type":"null"}],"format":"date"},
					"lines":{"type":"array","items":{"type":"object","properties":{"sku":{"type":["string","null"]}}}}},
					"$defs":{"item":{"type":"object","properties":{"id":{"type":"string"},"parent":{"$ref":"#/$defs/item"}},"required":["id"]}}},
				"outputSchema":{"type":"object","properties":{"price":{"type":"number","description":"In EUR."}}}}`),
		},
		Resources: []client.Entry{entry("shop://list", `{"uri":"shop://list","name":"list","mimeType":"text/plain","description":"All there is."}`)},
		Templates: []client.Entry{entry("shop://{id}", `{"uriTemplate":"shop://{id}","name":"item"}`)},
		Prompts: []client.Entry{
			entry("haggle", `{"name":"haggle","description":"Haggle.","arguments":[{"name":"price","required":true,"description":"The price."},{"name":"reason"}]}`),
			entry("greet", `{"name":"greet"}`),
		},
	})
}

func TestPage(t *testing.T) {
	plugintest.Golden(t, "shop.md", page("shop", shop()))
}

// shape is what a Markdown parser sees: headings, tables with their sizes, and
// whatever foreign text must not bring.
func shape(source string) string {
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList))
	var out []string
	root := parser.Parser().Parse(reading.NewReader([]byte(source)))
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			out = append(out, fmt.Sprint("h", n.Level))
		case *east.Table:
			rows, cells := 0, 0
			for row := n.FirstChild(); row != nil; row = row.NextSibling() {
				rows++
				cells = row.ChildCount()
			}
			out = append(out, fmt.Sprintf("table %dx%d", rows, cells))
		case *ast.Link, *ast.AutoLink, *ast.Image, *ast.RawHTML, *ast.HTMLBlock, *ast.List, *ast.Blockquote, *ast.CodeBlock, *ast.FencedCodeBlock,
			*ast.ThematicBreak, *east.Strikethrough, *east.TaskCheckBox, *east.FootnoteLink, *east.DefinitionList:
			out = append(out, "FOREIGN "+n.Kind().String())
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(out, ", ")
}

// hostile is text that would be much else in Markdown.
var hostile = []string{
	"# a", "a\n===", "a\n---", "- a\n- b", "* a", "+ a", "1. a", "12) a", "> a", "    code", "\tcode", "```\ncode", "~~~\ncode", "`a`", "``a`b``", "***",
	"[a](http://b)", "![a](b)", "<b>", "<script>alert(1)</script>", "<!-- a", "</details>", "http://example.com", "www.example.com", "WWW.example.com",
	"a@example.com", "<http://a>", "a | b\n---|---\nc | d", "a|b", "~~a~~", "[^1]: a", "[^1]", "[a]: http://b", "\\", "a\\", "\\`", "&lt;b&gt;", "&#35; a", "$x$",
	"a\n: b", "- [ ] a", "\u202e# a", "\x1b[31m", "a  \nb", "a\r# b", "a\u2028# b", "_a_ __b__", "ftp://a.b", "mailto:a@b.c", "{#id}", "|", "\n\n\n# a", "xmpp:a@b.c", "https://example.com/?a=b&c",
}

func withText(text string) *manifest.Manifest {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	s := string(raw)
	return manifest.Of(client.Introduction{Name: text, Title: text, Version: text, Instructions: text}, &client.Lists{
		Tools: []client.Entry{entry(text+"x", `{"name":`+s+`,"title":`+s+`,"description":`+s+`,"annotations":{"title":`+s+`},
			"inputSchema":{"properties":{`+s+`:{"type":`+s+`,"description":`+s+`,"enum":[`+s+`],"default":`+s+`,"pattern":`+s+`}}},"outputSchema":{"properties":{"a":{"description":`+s+`}}}}`)},
		Resources: []client.Entry{entry(text+"x", `{"name":`+s+`,"title":`+s+`,"description":`+s+`,"mimeType":`+s+`}`)},
		Templates: []client.Entry{entry(text+"x", `{"description":`+s+`}`)},
		Prompts:   []client.Entry{entry(text+"x", `{"title":`+s+`,"description":`+s+`,"arguments":[{"name":`+s+`,"description":`+s+`}]}`)},
	})
}

// want is the shape of such a page.
const want = "h1, h2, h2, h3, table 2x4, table 2x3, h2, h3, h2, h3, h2, h3, table 2x4"

// Foreign text does not change what a page is made of.
func TestHostileText(t *testing.T) {
	if got := shape(page("a", withText("plain"))); got != want {
		t.Fatalf("plain text makes %s", got)
	}
	for _, text := range hostile {
		for _, text := range []string{text, "a " + text, "a\n" + text, text + "\n" + text} {
			source := page("a", withText(text))
			if got := shape(source); got != want {
				t.Errorf("%q makes %s:\n%s", text, got, source)
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.TrimSpace(text) == "" || len(text) > 1000 || strings.ToValidUTF8(text, "") != text {
			return
		}
		source := page("a", withText(text))
		if got := shape(source); got != want {
			t.Fatalf("%q makes %s:\n%s", text, got, source)
		}
	})
}

// What is no definition makes a page all the same.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":7,"title":[],"inputSchema":{"properties":{"a":7},"required":7},"arguments":{},"annotations":[]}`))
	f.Add([]byte(`{"inputSchema":{"properties":{"a":{"$ref":"#/properties/a"},"b":{"items":{"$ref":"#"}}},"anyOf":[{}]}}`))
	f.Add([]byte(`{"inputSchema":{"$ref":"#/x","properties":{"a":{"anyOf":[{"anyOf":[7]}],"enum":[{}],"default":{"a":[1.50]}}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e := client.Entry{ID: "a", Definition: raw}
		source := page("a", manifest.Of(client.Introduction{}, &client.Lists{Tools: []client.Entry{e}, Prompts: []client.Entry{e}, Resources: []client.Entry{e}}))
		if got := shape(source); strings.Contains(got, "FOREIGN") || strings.Count(got, "h3") != 3 {
			t.Fatalf("it makes %s:\n%s", got, source)
		}
	})
}
