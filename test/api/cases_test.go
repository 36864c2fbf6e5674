// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// attempt is a value to put at a constraint's path, and the server's verdict
// on it: accepted if want is empty, or else refused in words that contain it.
type attempt struct {
	value any
	want  string
}

// absent as the value of an attempt removes the field.
type absent struct{ field string }

// parent as the value of an attempt replaces the object around the field.
type parent struct{ object any }

// merge as the value of an attempt is a JSON merge patch of the whole object.
type merge string

// attemptsFor is how a constraint is tried out: the good side of its border
// and the bad one. value is what a base object has there.
func attemptsFor(t *testing.T, c constraint, s *schema, value any) []attempt {
	t.Helper()
	switch c.sort {
	case "minLength":
		return bothSides(c, resize(value, *s.MinLength), resize(value, *s.MinLength-1),
			fmt.Sprintf("should be at least %d chars long", *s.MinLength))
	case "maxLength":
		return bothSides(c, resize(value, *s.MaxLength), resize(value, *s.MaxLength+1),
			fmt.Sprintf("may not be more than %d bytes", *s.MaxLength))
	case "minimum":
		return bothSides(c, int64(*s.Minimum), int64(*s.Minimum)-1,
			fmt.Sprintf("should be greater than or equal to %d", int64(*s.Minimum)))
	case "maximum":
		return bothSides(c, int64(*s.Maximum), int64(*s.Maximum)+1,
			fmt.Sprintf("should be less than or equal to %d", int64(*s.Maximum)))
	case "minItems":
		return bothSides(c, regrow(s, value, *s.MinItems), regrow(s, value, *s.MinItems-1),
			fmt.Sprintf("should have at least %d items", *s.MinItems))
	case "maxItems":
		return bothSides(c, regrow(s, value, *s.MaxItems), regrow(s, value, *s.MaxItems+1),
			fmt.Sprintf("must have at most %d items", *s.MaxItems))
	case "minProperties":
		return bothSides(c, onlyFirst(value), map[string]any{}, "should have at least 1 properties")
	case "maxProperties":
		return bothSides(c, properties(*s.MaxProperties), properties(*s.MaxProperties+1),
			fmt.Sprintf("must have at most %d items", *s.MaxProperties))
	case "listType":
		list, _ := value.([]any)
		return []attempt{{value: value}, {value: append(slices.Clone(list), list[0]), want: "Duplicate value"}}
	case "required":
		return []attempt{{value: value}, {value: absent{c.text}, want: c.text + ": Required value"}}
	case "enum":
		return enumAttempts(t, c, s)
	case "pattern":
		return tableAttempts(t, c, patterns, "should match '"+c.text+"'")
	case "rule":
		return tableAttempts(t, c, rules, c.text)
	}
	t.Fatalf("%v: the test does not know this sort of constraint", c)
	return nil
}

// bothSides has a good and a bad value, unless an exception says otherwise.
func bothSides(c constraint, good, bad any, want string) []attempt {
	attempts := []attempt{{value: bad, want: want}}
	if other, ok := borders[c.path+" "+c.sort]; ok {
		good = fromYAML(other)
	}
	if _, never := unreachable[c.path+" "+c.sort]; never || isNeverAccepted(c.path) {
		return attempts
	}
	return append(attempts, attempt{value: good})
}

// resize makes value n characters long.
func resize(value any, n int64) string {
	text, _ := value.(string)
	if missing := int(n) - len(text); missing > 0 {
		return text + strings.Repeat("a", missing)
	}
	return text[:n]
}

// regrow makes the list value n items long, with different keys.
func regrow(s *schema, value any, n int64) []any {
	list, _ := value.([]any)
	grown := slices.Clone(list[:min(int(n), len(list))])
	for i := len(grown); i < int(n); i++ {
		grown = append(grown, vary(s, runtime.DeepCopyJSONValue(list[0]), i))
	}
	return grown
}

// vary changes what must differ between the items of a list.
func vary(s *schema, item any, i int) any {
	if text, ok := item.(string); ok {
		return fmt.Sprintf("%s%d", text, i)
	}
	if object, ok := item.(map[string]any); ok {
		for _, key := range s.XListMapKeys {
			object[key] = fmt.Sprintf("%v%d", object[key], i)
		}
	}
	return item
}

func onlyFirst(value any) map[string]any {
	object, _ := value.(map[string]any)
	name := slices.Min(slices.Collect(maps.Keys(object)))
	return map[string]any{name: object[name]}
}

func properties(n int64) map[string]any {
	object := map[string]any{}
	for i := range n {
		object[fmt.Sprintf("key%d", i)] = "x"
	}
	return object
}

func enumAttempts(t *testing.T, c constraint, s *schema) []attempt {
	t.Helper()
	attempts := []attempt{{value: "Bogus", want: "Unsupported value: \"Bogus\""}}
	for _, allowed := range s.Enum {
		value := fromYAML(string(allowed.Raw))
		if around, ok := enumNeed(c.path, value); ok {
			value = parent{fromYAML(around)}
		}
		attempts = append(attempts, attempt{value: value})
	}
	return attempts
}

func tableAttempts(t *testing.T, c constraint, table map[string]examples, want string) []attempt {
	t.Helper()
	examples, ok := table[c.text]
	if !ok || len(examples.good) == 0 || len(examples.bad) == 0 {
		t.Fatalf("%v has no accepted and refused example: add them to examples_test.go", c)
	}
	var attempts []attempt
	for _, text := range examples.good {
		attempts = append(attempts, attempt{value: exampleValue(c, text)})
	}
	for _, text := range examples.bad {
		attempts = append(attempts, attempt{value: exampleValue(c, text), want: want})
	}
	return attempts
}

// exampleValue: at the root, where self is the whole object, an example is a
// merge patch.
func exampleValue(c constraint, text string) any {
	if c.path == "" {
		return merge(text)
	}
	return fromYAML(text)
}

func fromYAML(text string) any {
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return normal(value)
}

// normal turns whole numbers into int64, as unstructured objects have them.
func normal(value any) any {
	switch v := value.(type) {
	case float64:
		return int64(v)
	case map[string]any:
		for key := range v {
			v[key] = normal(v[key])
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	}
	return value
}
