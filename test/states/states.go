// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

// Package states keeps an object of each state that ours can be in, as the API
// server stored it. Tests that bring a state about compare what they see with
// what is kept, or write it anew (UPDATE_STATES=1); test/gitops shows each to
// the programs that judge objects by their status: kstatus, and the health
// scripts of Argo CD.
package states

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// UpdateVariable of the environment makes Check write objects.
const UpdateVariable = "UPDATE_STATES"

// when stands for every time: objects that differ in nothing else are equal.
const when = "2026-01-01T00:00:00Z"

// Check compares the conditions of obj with those of the object that is kept
// for its kind under name. The error says what differs, and how to keep the
// new one.
func Check(name string, obj *unstructured.Unstructured) error {
	path := filepath.Join(folder(), strings.ToLower(obj.GetKind())+"-"+name+".yaml")
	seen := normal(obj)
	if os.Getenv(UpdateVariable) != "" {
		return write(path, seen)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("no object is kept for this state (set %s=1 to keep it): %w", UpdateVariable, err)
	}
	kept := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &kept.Object); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if a, b := Conditions(kept), Conditions(seen); !slices.Equal(a, b) {
		return fmt.Errorf("%s holds other conditions than are seen (set %s=1 to keep the new ones):\n  kept %v\n  seen %v", filepath.Base(path), UpdateVariable, a, b)
	}
	return nil
}

// Conditions of an object, one line each: TYPE STATUS REASON.
func Conditions(obj *unstructured.Unstructured) []string {
	list, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	out := make([]string, 0, len(list))
	for _, item := range list {
		if c, ok := item.(map[string]any); ok {
			out = append(out, fmt.Sprintf("%v %v %v", c["type"], c["status"], c["reason"]))
		}
	}
	return out
}

func folder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "testdata")
}

func write(path string, obj *unstructured.Unstructured) error {
	raw, err := yaml.Marshal(obj.Object)
	if err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o600)
}

// normal is obj without what differs from run to run.
func normal(obj *unstructured.Unstructured) *unstructured.Unstructured {
	text, err := yaml.Marshal(obj.Object)
	if err != nil {
		panic(err) // It came from the API server.
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(text), obj.GetNamespace(), "team-a")), &out.Object); err != nil {
		panic(err)
	}
	out.SetManagedFields(nil)
	out.SetUID("")
	out.SetResourceVersion("")
	timeless(out.Object)
	return out
}

// timeless puts one time for all.
func timeless(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if _, ok := inner.(string); ok && (key == "lastTransitionTime" || key == "creationTimestamp" || key == "time") {
				v[key] = when
				continue
			}
			timeless(inner)
		}
	case []any:
		for _, inner := range v {
			timeless(inner)
		}
	}
}
