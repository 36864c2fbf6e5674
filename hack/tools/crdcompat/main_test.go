// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const crd = `
metadata: {name: as.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: A, plural: as, shortNames: [a], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            x-kubernetes-validations: [{rule: "self.a > 1", message: m}]
            properties:
              a: {type: integer, minimum: 1, maximum: 5, default: 2}
              b: {type: string, maxLength: 10, pattern: "^x", enum: [x, xx], description: d}
              description: {type: string, description: d}
              c:
                type: array
                maxItems: 3
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}}}
              d: {type: object, additionalProperties: {type: string}}
`

// TestCompare: each change, as a replacement in the text, and what is found.
func TestCompare(t *testing.T) {
	tests := map[string]struct{ from, to, want string }{
		"nothing":             {"", "", ""},
		"another text":        {"message: m", "message: n", ""},
		"a new field":         {"a: {type: integer", "new: {type: string}\n              a: {type: integer", ""},
		"looser bounds":       {"minimum: 1, maximum: 5", "minimum: 0, maximum: 6", ""},
		"a longer list":       {"maxItems: 3", "maxItems: 4", ""},
		"more words":          {"enum: [x, xx]", "enum: [x, xx, xxx]", ""},
		"any word":            {", enum: [x, xx]", "", ""},
		"less required":       {"required: [spec]", "required: []", ""},
		"a rule less":         {`[{rule: "self.a > 1", message: m}]`, "[]", ""},
		"a default":           {"maxLength: 10", "maxLength: 10, default: x", ""},
		"a field less":        {"d: {type: object, additionalProperties: {type: string}}", "", "v1.spec.d: the field is gone"},
		"another type":        {"a: {type: integer", "a: {type: string", "v1.spec.a: type integer became string"},
		"another default":     {"default: 2", "default: 3", "v1.spec.a: default 2 became 3"},
		"no default":          {", default: 2", "", "v1.spec.a: default 2 is gone"},
		"a higher minimum":    {"minimum: 1", "minimum: 2", "v1.spec.a: minimum 1 became 2"},
		"a lower maximum":     {"maxLength: 10", "maxLength: 9", "v1.spec.b: maxLength 10 became 9"},
		"a new bound":         {"a: {type: integer", "a: {type: integer, exclusiveMaximum: true", "v1.spec.a: exclusiveMaximum is new"},
		"a bound inside":      {"additionalProperties: {type: string}", "additionalProperties: {type: string, maxLength: 1}", "v1.spec.d[]: maxLength 1 is new"},
		"another pattern":     {`"^x"`, `"^xx"`, "v1.spec.b: pattern ^x became ^xx"},
		"a word less":         {"enum: [x, xx]", "enum: [x]", "v1.spec.b: enum lacks xx"},
		"a rule more":         {"message: m}", `message: m}, {rule: "self.a < 3"}`, "v1.spec: rule self.a < 3 is new"},
		"another rule":        {"self.a > 1", "self.a > 2", "v1.spec: rule self.a > 2 is new"},
		"required":            {"required: [name]", "required: [name, x]", "v1.spec.c[].x: the field is required now"},
		"other keys":          {"map-keys: [name]", "map-keys: [name, x]", "x-kubernetes-list-map-keys [name] became [name x]"},
		"a list of words":     {"x-kubernetes-list-type: map", "x-kubernetes-list-type: atomic", "x-kubernetes-list-type map became atomic"},
		"another version":     {"name: v1\n", "name: v2\n", "v1: the version is gone"},
		"a version unserved":  {"served: true", "served: false", "v1: the version is not served any more"},
		"no status":           {"subresources: {status: {}}", "subresources: {}", "v1: subresource status is another"},
		"another scope":       {"scope: Namespaced", "scope: Cluster", ".scope: Namespaced became Cluster"},
		"a short name less":   {"shortNames: [a]", "shortNames: [b]", ".names.shortNames: a is gone"},
		"a rule where fields": {"additionalProperties: {type: string}", "additionalProperties: {type: string, oneOf: [{minLength: 1}]}", "oneOf [map[minLength:1]] is new"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(crd, test.from, test.to, 1)
			if test.from != "" && changed == crd {
				t.Fatal("the change changes nothing")
			}
			got := compare(parse(t, crd), parse(t, changed))
			switch {
			case test.want == "" && len(got) > 0:
				t.Errorf("found %v", got)
			case test.want != "" && (len(got) != 1 || !strings.Contains(got[0], test.want)):
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
	if got := compare(parse(t, crd), nil); len(got) != 1 {
		t.Errorf("of a CRD that is gone is found %v", got)
	}
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRun: a baseline is written, compared with, and excepted from.
func TestRun(t *testing.T) {
	folder, file := t.TempDir(), filepath.Join(t.TempDir(), "a.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compares := func(what, want string) {
		t.Helper()
		err := run(folder, false, []string{file})
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	write(file, crd)
	compares("without a baseline", "holds no CRDs")
	if err := run(folder, true, []string{file}); err != nil {
		t.Fatal(err)
	}
	compares("the same", "")
	kept, err := read(filepath.Join(folder, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version, _ := list(object(kept, "spec"), "versions")[0].(map[string]any)
	fields := object(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if fields["description"] == nil || object(fields, "b")["description"] != nil {
		t.Errorf("kept is %v", fields)
	}
	write(file, strings.Replace(crd, "maximum: 5", "maximum: 4", 1))
	finding := "as.example.com v1.spec.a: maximum 5 became 4"
	compares("a tighter one", finding)
	write(filepath.Join(folder, exceptions), "# Nobody could use 5: #12.\n"+finding+"\n")
	compares("a tighter one that is harmless", "")
	write(file, crd)
	compares("an exception too many", "an exception that is none any more")
}
