// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/hack/docs/page"
)

type schema = apiextensionsv1.JSONSchemaProps

// kinds are the versions of our CRDs by kind.
type kinds map[string]apiextensionsv1.CustomResourceDefinitionVersion

func loadKinds(dir string) (kinds, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := kinds{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out[crd.Spec.Names.Kind] = crd.Spec.Versions[0]
	}
	return out, nil
}

// at walks down a path such as spec.upstreams; lists are walked through.
func (k kinds) at(kind, path string) (*schema, error) {
	version, ok := k[kind]
	if !ok {
		return nil, fmt.Errorf("there is no kind %s", kind)
	}
	s := version.Schema.OpenAPIV3Schema
	for _, name := range strings.Split(path, ".") {
		next, ok := inner(s).Properties[name]
		if !ok {
			return nil, fmt.Errorf("%s has no %s", kind, path)
		}
		s = &next
	}
	return s, nil
}

// inner is the schema of a list's items, or s itself.
func inner(s *schema) *schema {
	for s.Items != nil && s.Items.Schema != nil {
		s = s.Items.Schema
	}
	return s
}

// columns that kubectl get shows.
func (k kinds) columns(kind string) string {
	var rows [][]string
	for _, c := range k[kind].AdditionalPrinterColumns {
		wide := ""
		if c.Priority > 0 {
			wide = "`-o wide`"
		}
		rows = append(rows, []string{strings.ToUpper(c.Name), page.Code(c.JSONPath), wide})
	}
	return page.Table([]string{"column", "from", "only with"}, rows)
}

// described reports whether s, or anything below it, is of our own: types of
// Kubernetes have no descriptions in the CRDs.
func described(s *schema) bool {
	for _, p := range inner(s).Properties {
		if p.Description != "" {
			return true
		}
	}
	return false
}

// shape is equal for two schemas that have the same fields.
func shape(s *schema) string {
	text, err := json.Marshal(inner(s).Properties)
	if err != nil {
		panic(err) // It came from JSON.
	}
	return string(text)
}

func names(s *schema) []string {
	var out []string
	for name := range s.Properties {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
