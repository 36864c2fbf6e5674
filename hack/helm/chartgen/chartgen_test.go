// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const goodValues = `# About the file.

##@ First

# What a is
# for.
# +schema {"minimum": 1}
a: 1
group:
  # On or off | maybe.
  on: true
  # A list.
  list: [x]

##@ Second

deep:
  er:
    # A map.
    map: {}
`

func valuesOf(t *testing.T, text string) (*value, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return readValues(file)
}

func good(t *testing.T) *value {
	t.Helper()
	values, err := valuesOf(t, goodValues)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestValues(t *testing.T) {
	var got []string
	for _, leaf := range good(t).leaves() {
		got = append(got, leaf.section+": "+leaf.path+": "+leaf.description)
	}
	want := []string{"First: a: What a is for.", "First: group.on: On or off | maybe.", "First: group.list: A list.", "Second: deep.er.map: A map."}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for text, want := range map[string]string{
		"a: 1\n":                       "a: no comment says what it is for",
		"a: {}\n":                      "a: no comment says what it is for",
		"# A.\na: 1\ngroup:\n  b: 1\n": "line 4: group.b: no comment",
		"# A.\n# +schema {\na: 1\n":    "+schema",
		"# About the file, not the value.\n\na: 1": "no comment says what it is for",
		"- a\n": "not one map",
	} {
		if _, err := valuesOf(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", text, err, want)
		}
	}
}

func TestSchemaAndReadme(t *testing.T) {
	folder := t.TempDir()
	schemaFile, readmeFile := filepath.Join(folder, "schema"), filepath.Join(folder, "readme")
	if err := writeSchema(schemaFile, good(t)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		AdditionalProperties bool
		Properties           map[string]struct {
			Type, Description    string
			Minimum, Default     any
			AdditionalProperties *bool
		}
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	a, group := got.Properties["a"], got.Properties["group"]
	if got.AdditionalProperties || a.Type != "integer" || a.Minimum != 1.0 || a.Default != 1.0 || a.Description != "What a is for." ||
		group.Type != "object" || group.AdditionalProperties == nil || *group.AdditionalProperties || got.Properties["global"].Type != "object" {
		t.Errorf("schema %s", text)
	}
	if err := writeReadme(readmeFile, good(t)); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(readmeFile); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"### First", "### Second", "| `group.on` | On or off \\| maybe. | `true` |", "| `deep.er.map` | A map. | `{}` |"} {
		if strings.Count(string(text), want) != 1 {
			t.Errorf("the README does not say %q once", want)
		}
	}
}

// TestUse: each way that a template can use a value is seen, and what is not
// used, or is not there, is told.
func TestUse(t *testing.T) {
	const all = `{{ .Values.a }}{{ if .Values.group.on }}{{ end }}{{ range $i, $x := .Values.group.list }}{{ $.Values.a }}{{ $i }}{{ .foreign }}{{ end }}{{ toYaml .Values.deep.er.map }}`
	for text, want := range map[string]string{
		all: "",
		`{{ .Values.a }}{{ with .Values.group }}{{ .on }}{{ .list }}{{ end }}{{ $d := .Values.deep }}{{ $d.er.map.key }}`:                                "",
		`{{ define "x" }}{{ .Values.a }}{{ end }}{{ include "y" .Values.group }}{{ include "y" (list . $.Values.deep) }}`:                                "",
		`{{ .Values.a }}{{ if or (not .Values.group.on) .Values.group.list }}{{ else }}{{ with $.Values.deep.er }}{{ .map | toYaml }}{{ end }}{{ end }}`: "",
		all + `{{ .Values.b }}`:                                                                   "uses .Values.b, which values.yaml does not have",
		all + `{{ .Values.group.off }}`:                                                           "uses .Values.group.off",
		all + `{{ with .Values.group }}{{ .off }}{{ end }}`:                                       "uses .Values.group.off",
		strings.ReplaceAll(all, ".Values.group.on", "true"):                                       "no template uses the value group.on",
		`{{ .Values.a }}{{ with .Values.group }}{{ end }}{{ with .Values.deep.er.map }}{{ end }}`: "no template uses the value group.list",
		all + `{{ .Values`:                                                                        "unclosed action",
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "x.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := checkUse(folder, good(t))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestCRDTemplate(t *testing.T) {
	const crd = "---\napiVersion: v1\nmetadata:\n  annotations:\n    by: us\n  name: x\nspec:\n  description: 'like {{ this }}'\n"
	got, err := crdTemplate(crd)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"{{- if .Values.crds.enabled }}\napiVersion", "helm.sh/resource-policy: keep", "    by: us\n  name: x\n", `'like {{ "{{" }} this {{ "}}" }}'`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nlacks %s", got, want)
		}
	}
	if _, err := crdTemplate("metadata:\n  name: x\n"); err == nil {
		t.Error("a CRD without annotations is taken")
	}
}

// TestReplaceFolder: what is no longer made is gone.
func TestReplaceFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	for _, files := range []map[string]string{{"a": "1", "b": "1"}, {"b": "2"}} {
		if err := replaceFolder(folder, files); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) != len(files) {
			t.Errorf("%v, %v", entries, err)
		}
	}
	if text, err := readIfThere(filepath.Join(folder, "b")); err != nil || text != "2" {
		t.Errorf("%q, %v", text, err)
	}
	if text, err := readIfThere(filepath.Join(folder, "a")); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
