// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/espalier-dev/espalier/internal/mcp"
	"github.com/espalier-dev/espalier/internal/schema"
)

var update = flag.Bool("update", false, "write the golden files anew")

const head = "openapi: 3.0.3\ninfo: {title: t, version: '1'}\nservers: [{url: 'https://api.example.com'}]\n"

func mustParse(t *testing.T, text string) *Document {
	t.Helper()
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// toolsOf are the tools of a document at its own base.
func toolsOf(t *testing.T, text string) ([]Tool, []Left) {
	t.Helper()
	d := mustParse(t, text)
	base, err := d.Base("https://docs.example.com/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	return d.Tools(Options{Base: base})
}

func schemaOf(t *testing.T, tool Tool, key string) map[string]any {
	t.Helper()
	var definition map[string]any
	if err := json.Unmarshal(tool.Definition, &definition); err != nil {
		t.Fatal(err)
	}
	out, _ := definition[key].(map[string]any)
	return out
}

func TestGolden(t *testing.T) {
	for _, name := range []string{"petstore-3.0.yaml", "tree-3.1.json"} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			var first []byte
			for range 3 { // Equal each time, whatever the order of maps.
				tools, left := toolsOf(t, string(data))
				got, err := json.MarshalIndent(map[string]any{"tools": tools, "left": left}, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if first != nil && !bytes.Equal(first, got) {
					t.Fatal("two passes differ")
				}
				first = got
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, append(first, '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(first)+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKubernetes(t *testing.T) {
	// Written by hand after the API server's own: vast, many media types,
	// allOf around each reference, int-or-string.
	var b strings.Builder
	b.WriteString(`{"openapi":"3.0.0","info":{"title":"Kubernetes","version":"v1"},"paths":{`)
	b.WriteString(`"/apis/apps/v1/namespaces/{namespace}/deployments":{"parameters":[{"name":"namespace","in":"path","required":true,"schema":{"type":"string","uniqueItems":true}}],` +
		`"post":{"operationId":"createDeployment","requestBody":{"content":{"*/*":{"schema":{"$ref":"#/components/schemas/io.k8s.Deployment"}}}},` +
		`"responses":{"200":{"description":"OK","content":{"application/json":{"schema":{"$ref":"#/components/schemas/io.k8s.Deployment"}},"application/yaml":{"schema":{"$ref":"#/components/schemas/io.k8s.Deployment"}}}},` +
		`"201":{"description":"Created","content":{"application/json":{"schema":{"$ref":"#/components/schemas/io.k8s.Deployment"}}}},"401":{"description":"Unauthorized"}},` +
		`"x-kubernetes-action":"post"}}},"components":{"schemas":{`)
	b.WriteString(`"io.k8s.Deployment":{"type":"object","properties":{"port":{"oneOf":[{"type":"integer"},{"type":"string"}],"format":"int-or-string"}`)
	for i := range 900 {
		fmt.Fprintf(&b, `,"p%d":{"allOf":[{"$ref":"#/components/schemas/io.k8s.Time"}],"description":"%s","default":{}}`, i, strings.Repeat("very long words ", 60))
	}
	b.WriteString(`}},"io.k8s.Time":{"type":"string","format":"date-time"}}}}`)
	if b.Len() < 800_000 {
		t.Fatalf("%d bytes are not many", b.Len())
	}
	tools, left := toolsOf(t, b.String())
	if len(tools) != 1 || tools[0].Request.URL != "https://docs.example.com/apis/apps/v1/namespaces/{namespace}/deployments" {
		t.Fatalf("%d tools, %v", len(tools), left)
	}
	if !slices.Contains(left, Left{"createDeployment", ReasonSchemaSimplified, true}) {
		t.Errorf("left %v", left)
	}
	for _, key := range []string{"inputSchema", "outputSchema"} {
		raw, _ := json.Marshal(schemaOf(t, tools[0], key))
		compiled, err := schema.Compile(raw)
		if err != nil {
			t.Fatalf("%s of %d bytes: %v", key, len(raw), err)
		}
		if key == "outputSchema" && compiled.Validate(map[string]any{"p1": nil, "more": true}) != nil {
			t.Error("an absent time that is written as null is refused")
		}
	}
	if tools[0].Request.Body.MediaType != "application/json" {
		t.Errorf("sends %s", tools[0].Request.Body.MediaType)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "text": "hello", "page": "<html></html>", "list": "[]", "no version": "paths: {}",
		"older": `{"swagger":"2.0","paths":{}}`, "newer": "openapi: 4.0.0\npaths: {}\n", "broken": "openapi: [",
		"bomb":                "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\n" + head,
		"too many references": head + "paths: {}\nx-a: [" + strings.Repeat("{$ref: '#/info'},", maxReferences+1) + "]\n",
		"too large":           head + "x-a: " + strings.Repeat("a", MaxBytes),
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: was read", name)
		}
	}
}

func TestReferences(t *testing.T) {
	tools, left := toolsOf(t, head+`
paths:
  /away: {post: {operationId: away, requestBody: {content: {application/json: {schema: {$ref: 'https://evil.example.com/x.yaml#/a'}}}}, responses: {}}}
  /file: {get: {operationId: file, parameters: [{$ref: '/etc/passwd'}], responses: {}}}
  /gone: {post: {operationId: gone, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Gone'}}}}, responses: {}}}
  /deep: {post: {operationId: deep, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Deep'}}}}, responses: {}}}
  /answer: {get: {operationId: answer, responses: {200: {description: d, content: {application/json: {schema: {$ref: 'other.yaml'}}}}}}}
  /self: {post: {operationId: self, requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Self'}}}}, responses: {}}}
  /fine: {post: {operationId: fine, requestBody: {content: {application/json: {schema: {$ref: '#/paths/~1where/get/parameters/0/schema'}}}}, responses: {}}}
  /where: {get: {operationId: where, parameters: [{name: q, in: query, schema: {type: object, properties: {a: {type: string}}}}], responses: {}}}
components:
  schemas:
    Deep: {type: object, properties: {a: {type: array, items: {$ref: 'x.yaml'}}}}
    Self: {$ref: '#/components/schemas/Self'}
`)
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if diff := cmp.Diff([]string{"answer", "fine", "where"}, names); diff != "" {
		t.Error(diff)
	}
	for _, l := range left {
		if l.Reason != ReasonStrayReference || l.Served {
			t.Errorf("left %v", l)
		}
	}
	if len(left) != 5 {
		t.Errorf("left %v", left)
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("veryLong", 12)
	tools, _ := toolsOf(t, head+`
paths:
  /a: {get: {operationId: list pets, responses: {}}, post: {operationId: list_pets, responses: {}}, put: {operationId: 'list/pets', responses: {}}}
  /b/{x}: {get: {responses: {}}}
  /c: {get: {operationId: 'ÄÖ', responses: {}}, post: {operationId: `+long+`, responses: {}}}
  /d: {get: {operationId: same, responses: {}}, post: {operationId: same, responses: {}}}
`)
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
		if !mcp.ValidToolName(tool.Name) || len(tool.Name) > mcp.MaxClientToolName || strings.Contains(tool.Name, ".") {
			t.Errorf("%q is no name", tool.Name)
		}
	}
	want := []string{
		suffixed("list_pets", "GET /a"), "list_pets", suffixed("list_pets", "PUT /a"), "get_b_x", "get_c", suffixed(long, long),
		suffixed("same", "GET /d"), suffixed("same", "POST /d"),
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

func TestBase(t *testing.T) {
	for servers, want := range map[string]string{
		"[]":                           "https://docs.example.com",
		"[{url: /v2/}]":                "https://docs.example.com/v2",
		"[{url: ../v3}]":               "https://docs.example.com/v3",
		"[{url: '//h.example.com/x'}]": "https://h.example.com/x",
		"[{url: 'https://{h}/a', variables: {h: {default: b.example.com}}}]": "https://b.example.com/a",
		"[{url: 'https://{h}/a'}]":     "",
		"[{url: 'ftp://a/'}]":          "",
		"[{url: 'https://u:p@a/'}]":    "",
		"[{url: 'https://a/b?c=d#e'}]": "https://a/b",
	} {
		d := mustParse(t, "openapi: 3.1.0\ninfo: {title: t, version: '1'}\npaths: {}\nservers: "+servers+"\n")
		if got, _ := d.Base("https://docs.example.com/api/openapi.json"); got != want {
			t.Errorf("%s gives %q, not %q", servers, got, want)
		}
	}
	if _, err := mustParse(t, "openapi: 3.1.0\npaths: {}\nservers: [{url: /v1}]").Base(""); err == nil {
		t.Error("a relative server is relative to nothing")
	}
}

func TestOtherServers(t *testing.T) {
	text := head + `
paths:
  /a: {get: {operationId: here, servers: [{url: 'https://api.example.com/v9'}], responses: {}}}
  /b: {servers: [{url: 'https://evil.example.com'}], get: {operationId: there, responses: {}}}
`
	tools, left := toolsOf(t, text)
	if len(tools) != 1 || tools[0].Request.URL != "https://api.example.com/v9/a" || !slices.Contains(left, Left{"there", ReasonOtherServer, false}) {
		t.Errorf("%v, left %v", tools, left)
	}
	tools, _ = mustParse(t, text).Tools(Options{Base: "https://mine/x/?k=v", BaseDeclared: true})
	if len(tools) != 2 || tools[0].Request.URL != "https://mine/x/a?k=v" || tools[1].Request.URL != "https://mine/x/b?k=v" {
		t.Errorf("%v", tools)
	}
}

func TestHeadersOfTheConnection(t *testing.T) {
	tools, _ := mustParse(t, head+`
paths:
  /a:
    get:
      parameters:
      - {name: Authorization, in: header, required: true, schema: {type: string}}
      - {name: x-api-key, in: header, required: true, schema: {type: string}}
      - {name: Host, in: header, schema: {type: string}}
      - {name: X-Other, in: header, schema: {type: string}}
      responses: {}
`).Tools(Options{Base: "https://a", Headers: []string{"X-API-Key"}})
	if len(tools) != 1 || len(tools[0].Request.Params) != 1 || tools[0].Request.Params[0].Arg != "X-Other" {
		t.Errorf("%+v", tools)
	}
}

func FuzzTools(f *testing.F) {
	for _, name := range []string{"petstore-3.0.yaml", "tree-3.1.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(head + "paths: {/a: {get: {parameters: [{name: a, in: query, schema: {$ref: '#/paths/~1a'}}], responses: {}}}}"))
	f.Add([]byte(`{"openapi":"3.1.0","paths":{"/{a}{b}":{"post":{"requestBody":{"content":{"application/json":{"schema":{"allOf":[{"$ref":"#/components/schemas/A"}]}}}}}}},"components":{"schemas":{"A":{"allOf":[{"$ref":"#/components/schemas/A"}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil {
			return
		}
		tools, _ := d.Tools(Options{Base: "https://api.example.com/v1", Headers: []string{"X-Key"}})
		names := map[string]bool{}
		for _, tool := range tools {
			if names[tool.Name] || !mcp.ValidToolName(tool.Name) || len(tool.Name) > mcp.MaxClientToolName {
				t.Fatalf("the name %q", tool.Name)
			}
			names[tool.Name] = true
			if !strings.HasPrefix(tool.Request.URL, "https://api.example.com/v") {
				t.Fatalf("the URL %q", tool.Request.URL)
			}
			raw, err := json.Marshal(schemaOf(t, tool, "inputSchema"))
			if err != nil || len(raw) > schema.MaxBytes {
				t.Fatalf("an input schema of %d bytes, %v", len(raw), err)
			}
			if out := schemaOf(t, tool, "outputSchema"); out != nil {
				raw, _ := json.Marshal(out)
				if _, err := schema.Compile(raw); err != nil {
					t.Fatalf("%s: %v", raw, err)
				}
			}
		}
	})
}
