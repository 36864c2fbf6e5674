// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package charttest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"
)

// schema of a value, as values.schema.json has it.
type schema struct {
	Type       any               `json:"type"`
	Default    any               `json:"default"`
	Enum       []any             `json:"enum"`
	Examples   []any             `json:"examples"`
	Properties map[string]schema `json:"properties"`
}

// everything switches all parts of the chart on, so that each value could
// matter.
func everything(t *testing.T) map[string]any {
	t.Helper()
	values := map[string]any{}
	text := `{metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}, podDisruptionBudget: {enabled: true}, networkPolicy: {enabled: true}}`
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	present := kustomize(t, "prometheus")
	metrics := values["metrics"].(map[string]any)
	metrics["prometheusRule"] = map[string]any{"enabled": present["PrometheusRule system/rules"] != nil}
	metrics["dashboard"] = map[string]any{"enabled": present["ConfigMap system/dashboard"] != nil}
	return values
}

// TestEachValueMatters: a value that is set otherwise changes what is
// rendered. A value that does nothing would be a promise that nobody keeps.
func TestEachValueMatters(t *testing.T) {
	var all schema
	if err := json.Unmarshal([]byte(readFile(t, "charts", "espalier", "values.schema.json")), &all); err != nil {
		t.Fatal(err)
	}
	base := everything(t)
	whole, light := load(t), load(t)
	// The CRDs take most of the time, and few values matter to them.
	light.Templates = slices.DeleteFunc(light.Templates, func(f *common.File) bool { return strings.HasPrefix(f.Name, "templates/crds/") })
	before := map[*chart.Chart]objects{whole: rendered(t, whole, base), light: rendered(t, light, base)}
	tried := 0
	each(all, nil, func(path []string, s schema) {
		name := strings.Join(path, ".")
		if off(base, path) {
			t.Logf("%s belongs to what this chart does not have yet", name)
			return
		}
		of := light
		if path[0] == "crds" || path[0] == "commonLabels" {
			of = whole
		}
		other, ok := another(s)
		if strings.HasSuffix(name, ".enabled") {
			other, ok = !get(base, path, s.Default).(bool), true
		}
		if !ok {
			t.Errorf("%s: no other value is known: give its +schema an example", name)
			return
		}
		tried++
		values := clone(base)
		set(values, path, other)
		if name == "rbac.clusterScoped" { // It needs these.
			set(values, []string{"watchNamespaces"}, []any{"team-a"})
			set(values, []string{"metrics", "secure"}, false)
			with := clone(values)
			set(with, path, true)
			if reflect.DeepEqual(rendered(t, of, with), rendered(t, of, values)) {
				t.Errorf("%s changes nothing", name)
			}
			return
		}
		if name == "metrics.enabled" { // A ServiceMonitor needs metrics.
			set(values, []string{"metrics", "serviceMonitor", "enabled"}, false)
		}
		if reflect.DeepEqual(before[of], rendered(t, of, values)) {
			t.Errorf("%s=%v changes nothing", name, other)
		}
	})
	if tried < 50 {
		t.Errorf("only %d values were tried", tried)
	}
}

// off tells whether a value belongs to alerts or a dashboard that the chart
// does not have.
func off(values map[string]any, path []string) bool {
	if len(path) < 3 || path[0] != "metrics" {
		return false
	}
	part, _ := values["metrics"].(map[string]any)[path[1]].(map[string]any)
	return part["enabled"] == false
}

// each value of a schema that is no group.
func each(s schema, path []string, visit func([]string, schema)) {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member, below := s.Properties[name], append(slices.Clone(path), name)
		switch {
		case len(path) == 0 && name == "global":
		case member.Default == nil && len(member.Properties) > 0:
			each(member, below, visit)
		default:
			visit(below, member)
		}
	}
}

// another value than the default, which the schema allows.
func another(s schema) (any, bool) {
	for _, candidate := range slices.Concat(s.Examples, s.Enum) {
		if !reflect.DeepEqual(candidate, s.Default) && candidate != "" {
			return candidate, true
		}
	}
	switch value := s.Default.(type) {
	case bool:
		return !value, true
	case float64:
		return value + 1, true
	case string:
		return "other" + value, true
	}
	return nil, false
}

func set(values map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, ok := values[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			values[name] = next
		}
		values = next
	}
	values[path[len(path)-1]] = value
}

func clone(values map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok {
			value = clone(inner)
		}
		out[name] = value
	}
	return out
}

// get the value at path, or fallback.
func get(values map[string]any, path []string, fallback any) any {
	for _, name := range path[:len(path)-1] {
		values, _ = values[name].(map[string]any)
	}
	if value, ok := values[path[len(path)-1]]; ok {
		return value
	}
	return fallback
}

func rendered(t *testing.T, of *chart.Chart, values map[string]any) objects {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	out, err := tryRenderOf(t, of, release, string(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// TestRefused: what is misspelt or cannot work is refused before anything is
// applied, in words that say what to do.
func TestRefused(t *testing.T) {
	for values, want := range map[string]string{
		`{replicas: 3}`:                                                "replicas",
		`{manager: {replica: 3}}`:                                      "replica",
		`{manager: {replicas: -1}}`:                                    "replicas",
		`{manager: {replicas: two}}`:                                   "replicas",
		`{manager: {image: {digest: "sha256:12"}}}`:                    "digest",
		`{manager: {logging: {level: loud}}}`:                          "level",
		`{manager: {extraArgs: [zap-devel]}}`:                          "extraArgs",
		`{image: {pullPolicy: Sometimes}}`:                             "pullPolicy",
		`{watchNamespaces: [Team_A]}`:                                  "watchNamespaces",
		`{watchNamespaces: [a, a]}`:                                    "watchNamespaces",
		`{servers: {podSecurity: strict}}`:                             "podSecurity",
		`{servers: {runAsUser: root}}`:                                 "runAsUser",
		`{metrics: {port: 0}}`:                                         "port",
		`{rbac: {clusterScoped: false}}`:                               "needs watchNamespaces",
		`{rbac: {clusterScoped: false}, watchNamespaces: [a]}`:         "needs metrics.secure=false or metrics.enabled=false",
		`{metrics: {enabled: false, serviceMonitor: {enabled: true}}}`: "metrics.serviceMonitor.enabled needs metrics.enabled",
	} {
		if _, err := tryRender(t, release, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error that says %q", values, err, want)
		}
	}
}
