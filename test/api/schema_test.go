// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
)

// schema is a node of a CRD's schema.
type schema = apiextensionsv1.JSONSchemaProps

// kinds are the kinds under test, each with the name of its CRD.
var kinds = map[string]string{
	"MCPServer":   "mcpservers.mcp.espalier.dev",
	"MCPTool":     "mcptools.mcp.espalier.dev",
	"MCPResource": "mcpresources.mcp.espalier.dev",
	"MCPPrompt":   "mcpprompts.mcp.espalier.dev",
}

// foreign are the paths below which the schema is Kubernetes' own, tested
// there.
var foreign = []string{
	"spec.serverSelector",
	"spec.networkPolicy.egress.namespaces",
	"spec.networkPolicy.ingress.namespaces",
	"spec.stdio.env",
	"spec.workload.affinity",
	"spec.workload.env",
	"spec.workload.envFrom",
	"spec.workload.resources",
	"spec.workload.tolerations",
	"spec.workload.topologySpreadConstraints",
	"spec.workload.volumeMounts",
	"spec.workload.volumes[].configMap",
	"spec.workload.volumes[].emptyDir",
	"spec.workload.volumes[].persistentVolumeClaim",
	"spec.workload.volumes[].secret",
	"status.conditions",
	"status.servers[].conditions",
}

// constraint is one thing that a schema demands of the value at a path.
type constraint struct {
	path string // "spec.workload.volumes[].name"
	sort string // the schema's keyword
	text string // its value, as far as it tells constraints apart
}

func (c constraint) String() string {
	return strings.TrimSpace(c.path + " " + c.sort + " " + c.text)
}

// crd is the CRD of a kind as the server has it.
func crd(t *testing.T, kind string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := server.Client.Get(t.Context(), types.NamespacedName{Name: kinds[kind]}, definition); err != nil {
		t.Fatal(err)
	}
	return definition
}

// rootSchema is the schema of a kind.
func rootSchema(t *testing.T, kind string) *schema {
	t.Helper()
	return crd(t, kind).Spec.Versions[0].Schema.OpenAPIV3Schema
}

// constraintsOf are the constraints of one node.
func constraintsOf(path string, s *schema) []constraint {
	var all []constraint
	add := func(set bool, sort string, text any) {
		if set {
			all = append(all, constraint{path: path, sort: sort, text: fmt.Sprint(text)})
		}
	}
	add(deref(s.MinLength) > 0, "minLength", deref(s.MinLength))
	add(s.MaxLength != nil, "maxLength", deref(s.MaxLength))
	add(s.Minimum != nil, "minimum", deref(s.Minimum))
	add(s.Maximum != nil, "maximum", deref(s.Maximum))
	add(s.MinItems != nil, "minItems", deref(s.MinItems))
	add(s.MaxItems != nil, "maxItems", deref(s.MaxItems))
	add(s.MinProperties != nil, "minProperties", deref(s.MinProperties))
	add(s.MaxProperties != nil, "maxProperties", deref(s.MaxProperties))
	add(s.Pattern != "", "pattern", s.Pattern)
	add(len(s.Enum) > 0, "enum", "")
	add(s.XListType != nil && *s.XListType != "atomic", "listType", deref(s.XListType))
	for _, name := range s.Required {
		add(true, "required", name)
	}
	for _, rule := range s.XValidations {
		add(true, "rule", rule.Message)
	}
	return all
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// allConstraints are those of a schema and what lies below it.
func allConstraints(path string, s *schema) []constraint {
	all := constraintsOf(path, s)
	if slices.Contains(foreign, path) {
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		all = append(all, allConstraints(join(path, name), &property)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		all = append(all, allConstraints(path+"[]", s.Items.Schema)...)
	}
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
