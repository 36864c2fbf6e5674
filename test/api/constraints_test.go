// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/test/apiserver"
)

// TestEveryConstraint tries each bound, pattern, enum, required field, list
// key and CEL rule of the CRDs from both sides. What to try follows from the
// schema and the base objects of testdata, patterns and rules from the tables
// of examples_test.go. A constraint that nothing tries fails the test.
func TestEveryConstraint(t *testing.T) {
	for kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			root := rootSchema(t, kind)
			tried := map[constraint]bool{}
			for _, base := range basesOf(t, kind) {
				w := walk{t: t, base: base, tried: tried}
				w.visit("", nil, root, base.Object)
			}
			for _, c := range allConstraints("", root) {
				if !tried[c] {
					t.Errorf("nothing tries %v: add an object that reaches it to testdata", c)
				}
			}
			t.Logf("%d constraints", len(tried))
		})
	}
}

// TestEveryExampleIsUsed keeps the tables free of what no schema has.
func TestEveryExampleIsUsed(t *testing.T) {
	used := map[string]bool{}
	for kind := range kinds {
		for _, c := range allConstraints("", rootSchema(t, kind)) {
			used[c.text] = true
			used[c.path+" "+c.sort] = true
		}
	}
	for text := range patterns {
		if !used[text] {
			t.Errorf("no schema has the pattern %s", text)
		}
	}
	for text := range rules {
		if !used[text] {
			t.Errorf("no schema has a rule with the message %q", text)
		}
	}
	for _, exceptions := range []map[string]string{borders, unreachable} {
		for key := range exceptions {
			if !used[key] {
				t.Errorf("no schema has the constraint %s", key)
			}
		}
	}
}

// basesOf are the objects of testdata of a kind. The server must take them.
func basesOf(t *testing.T, kind string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var bases []*unstructured.Unstructured
	for _, file := range files {
		objects, err := apiserver.ReadObjects(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			object.Object, _ = normal(object.Object).(map[string]any)
			if object.GetKind() != kind {
				continue
			}
			if err := try(t, object, client.FieldValidation("Strict")); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			bases = append(bases, object)
		}
	}
	return bases
}

// walk goes through a base object along its schema.
type walk struct {
	t     *testing.T
	base  *unstructured.Unstructured
	tried map[constraint]bool
}

// visit tries the constraints of the value at place, then goes on below it.
func (w *walk) visit(path string, place []any, s *schema, value any) {
	for _, c := range constraintsOf(path, s) {
		if !w.tried[c] {
			w.tried[c] = true
			w.try(c, place, s, value)
		}
	}
	if slices.Contains(foreign, path) {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		w.visitFields(path, place, s, v)
	case []any:
		for i, item := range v {
			w.visit(path+"[]", append(slices.Clone(place), i), s.Items.Schema, item)
		}
	}
}

func (w *walk) visitFields(path string, place []any, s *schema, object map[string]any) {
	for name, property := range s.Properties {
		value, ok := object[name]
		if !ok && path != "metadata" && isNeverAccepted(join(path, name)) {
			value, ok = "elsewhere", true
		}
		if ok {
			w.visit(join(path, name), append(slices.Clone(place), name), &property, value)
		}
	}
}

func (w *walk) try(c constraint, place []any, s *schema, value any) {
	for _, a := range attemptsFor(w.t, c, s, value) {
		object := w.with(place, a.value)
		err := try(w.t, object)
		switch {
		case a.want == "" && err != nil:
			w.t.Errorf("%v: %s is refused: %v", c, show(a.value), err)
		case a.want != "" && err == nil:
			w.t.Errorf("%v: %s is accepted", c, show(a.value))
		case a.want != "" && !strings.Contains(err.Error(), a.want):
			w.t.Errorf("%v: %s is refused with\n%v\nwithout the words\n%s", c, show(a.value), err, a.want)
		}
	}
}

// with is the base object with another value at place.
func (w *walk) with(place []any, value any) *unstructured.Unstructured {
	object := w.base.DeepCopy()
	switch v := value.(type) {
	case merge:
		object.Object = mergePatch(w.t, object.Object, string(v))
	case parent:
		set(object.Object, place[:len(place)-1], runtime.DeepCopyJSONValue(v.object))
	case absent:
		target, _ := lookup(object.Object, place).(map[string]any)
		delete(target, v.field)
	default:
		if len(place) > 0 {
			set(object.Object, place, runtime.DeepCopyJSONValue(v))
		}
	}
	return object
}

func lookup(value any, place []any) any {
	for _, step := range place {
		switch v := value.(type) {
		case map[string]any:
			value = v[step.(string)]
		case []any:
			value = v[step.(int)]
		}
	}
	return value
}

func set(object any, place []any, value any) {
	last := len(place) - 1
	switch parent := lookup(object, place[:last]).(type) {
	case map[string]any:
		parent[place[last].(string)] = value
	case []any:
		parent[place[last].(int)] = value
	}
}

func mergePatch(t *testing.T, object map[string]any, patch string) map[string]any {
	t.Helper()
	before, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	change, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	after, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		t.Fatal(err)
	}
	merged, _ := fromYAML(string(after)).(map[string]any)
	return merged
}

// try asks the server whether it would take an object, spec and status.
func try(t *testing.T, object *unstructured.Unstructured, options ...client.CreateOption) error {
	t.Helper()
	err := server.Client.Create(t.Context(), object.DeepCopy(), append(options, client.DryRunAll)...)
	if err != nil || object.Object["status"] == nil {
		return err
	}
	stored := stand(t, object)
	stored.Object["status"] = object.Object["status"]
	return server.Client.Status().Update(t.Context(), stored, client.DryRunAll)
}

// stand is an object whose status can be tried, stored on first use.
func stand(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	stored := object.DeepCopy()
	stored.SetName("stand")
	unstructured.RemoveNestedField(stored.Object, "status")
	stored.Object["spec"] = map[string]any{}
	switch object.GetKind() {
	case "MCPTool":
		stored.Object["spec"] = fromYAML(`{serverRefs: [{name: a}]}`)
	case "MCPResource":
		stored.Object["spec"] = fromYAML(`{serverRefs: [{name: a}], uri: "a:b", text: ""}`)
	case "MCPPrompt":
		stored.Object["spec"] = fromYAML(`{serverRefs: [{name: a}], messages: [{role: User, content: {type: Text, text: a}}]}`)
	}
	if err := client.IgnoreAlreadyExists(server.Client.Create(t.Context(), stored)); err != nil {
		t.Fatal(err)
	}
	if err := server.Client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	return stored
}

func show(value any) string {
	text := fmt.Sprintf("%v", value)
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return text
}
