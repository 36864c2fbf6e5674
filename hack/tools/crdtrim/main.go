// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Crdtrim removes, from the CRDs it is given, the descriptions inside types
// of Kubernetes itself (affinity, env, volumes, ...): they are most of a CRD's
// size, and "kubectl explain pod.spec" has them. Those of name, key and
// namespace in references to a Secret or ConfigMap go too: they stand there
// dozens of times and say what their names say. The descriptions of our own
// fields stay otherwise, and so does every type, bound and rule.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// foreign are the fields, below spec.workload, whose types are Kubernetes'.
// In a list of fields of ours, the second level says which are.
var foreign = map[string][]string{
	"affinity":                  nil,
	"env":                       nil,
	"envFrom":                   nil,
	"resources":                 nil,
	"tolerations":               nil,
	"topologySpreadConstraints": nil,
	"volumeMounts":              nil,
	"volumes":                   {"configMap", "emptyDir", "persistentVolumeClaim", "secret"},
}

func main() {
	for _, file := range os.Args[1:] {
		if err := trimFile(file); err != nil {
			fmt.Fprintf(os.Stderr, "crdtrim: %s: %v\n", file, err)
			os.Exit(1)
		}
	}
}

func trimFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var crd map[string]any
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	spec := member(crd, "spec")
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		v, _ := version.(map[string]any)
		trimWorkload(properties(member(v, "schema", "openAPIV3Schema"), "spec", "workload"))
		trimBelow(properties(member(v, "schema", "openAPIV3Schema"), "spec", "stdio", "env"))
		for _, direction := range []string{"ingress", "egress"} {
			trimBelow(properties(member(v, "schema", "openAPIV3Schema"), "spec", "networkPolicy", direction, "namespaces"))
		}
		trimReferences(v["schema"])
	}
	out, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append([]byte("---\n"), out...), 0o644)
}

func trimWorkload(workload map[string]any) {
	for name, inner := range foreign {
		field := properties(workload, name)
		if inner == nil {
			trimBelow(field)
			continue
		}
		for _, name := range inner {
			trimBelow(properties(member(field, "items"), name))
		}
	}
}

// trimReferences removes the descriptions of the fields of references.
func trimReferences(value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, field := range v {
			schema, ok := field.(map[string]any)
			if ok && isReference(name) && properties(schema, "name") != nil {
				trimBelow(schema)
			}
			trimReferences(field)
		}
	case []any:
		for _, item := range v {
			trimReferences(item)
		}
	}
}

func isReference(name string) bool {
	switch name {
	case "secretKeyRef", "configMapKeyRef", "secretRef", "clientSecretRef", "clientCertificateRef":
		return true
	}
	return false
}

// trimBelow removes the descriptions below schema, not its own.
func trimBelow(schema map[string]any) {
	for _, value := range schema {
		trim(value)
	}
}

func trim(value any) {
	switch v := value.(type) {
	case map[string]any:
		if _, ok := v["description"].(string); ok {
			delete(v, "description")
		}
		trimBelow(v)
	case []any:
		for _, item := range v {
			trim(item)
		}
	}
}

// properties walks down the named properties of a schema.
func properties(schema map[string]any, names ...string) map[string]any {
	for _, name := range names {
		schema = member(schema, "properties", name)
	}
	return schema
}

func member(value map[string]any, names ...string) map[string]any {
	for _, name := range names {
		value, _ = value[name].(map[string]any)
	}
	return value
}
