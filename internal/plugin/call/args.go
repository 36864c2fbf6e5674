// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package call

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/mcpserver/wire"
	"github.com/espalier-dev/espalier/internal/plugin/env"
)

// argsHint says how arguments are written.
const argsHint = "Write name=value, name.inner=value for what is nested, name:=JSON for a value in JSON; repeat name=value for a list. \"kubectl mcp tools SERVER -o wide\" shows the arguments."

// assemble makes the arguments' object of words like a.b=value, typed by the
// schema.
func assemble(words []string, schema shape) (json.RawMessage, error) {
	root := map[string]any{}
	for _, word := range words {
		key, value, raw, err := split(word)
		if err != nil {
			return nil, err
		}
		if err := put(root, schema, "", key, value, raw); err != nil {
			return nil, err
		}
	}
	return json.Marshal(root)
}

// split parts a word at its first "=" or ":=".
func split(word string) (key, value string, raw bool, err error) {
	key, value, ok := strings.Cut(word, "=")
	if key, raw = strings.CutSuffix(key, ":"); !ok || key == "" {
		return "", "", false, env.Hint(fmt.Errorf("%q is no argument: there is no name before a \"=\"", word), argsHint)
	}
	return key, value, raw, nil
}

// put sets key, which may lead into objects, of an object of shape s. at is
// where that object is.
func put(object map[string]any, s shape, at, key, value string, raw bool) error {
	name, rest, inner, err := lead(s, at, key)
	if err != nil {
		return err
	}
	place := at + name
	if rest != "" {
		next, ok := object[name].(map[string]any)
		if !ok && object[name] != nil {
			return fmt.Errorf("argument %q is given as a value and as an object", place)
		}
		if next == nil {
			next = map[string]any{}
			object[name] = next
		}
		return put(next, inner, place+".", rest, value, raw)
	}
	if raw {
		if object[name] != nil {
			return fmt.Errorf("argument %q is given twice", place)
		}
		if !wire.Valid([]byte(value)) {
			return env.Hint(fmt.Errorf("argument %q: what follows := is no JSON", place), argsHint)
		}
		object[name] = json.RawMessage(value)
		return nil
	}
	return set(object, name, inner, place, value)
}

// set sets a value, or adds it to a list.
func set(object map[string]any, name string, s shape, place, value string) error {
	if s.is("array") && !strings.HasPrefix(value, "[") {
		list, ok := object[name].([]any)
		if !ok && object[name] != nil {
			return fmt.Errorf("argument %q is given as a whole list and by its parts", place)
		}
		element, err := typed(s.items(), place, value)
		if err == nil {
			object[name] = append(list, element)
			return nil
		}
		if len(s.types()) == 1 {
			return err
		}
	}
	if object[name] != nil {
		return fmt.Errorf("argument %q is given twice, and is no list", place)
	}
	v, err := typed(s, place, value)
	object[name] = v
	return err
}

// lead finds the property that key begins with: the longest that is declared,
// since names may have dots. rest is what follows it.
func lead(s shape, at, key string) (name, rest string, inner shape, err error) {
	for end := len(key); end > 0; end = strings.LastIndex(key[:end], ".") {
		if inner, ok := s.property(key[:end]); ok {
			return key[:end], strings.TrimPrefix(key[end:], "."), inner, nil
		}
	}
	if s.node != nil && !s.open() {
		return "", "", shape{}, unknown(s, at, key)
	}
	name, rest, nested := strings.Cut(key, ".")
	if nested && (name == "" || rest == "") {
		name, rest = key, ""
	}
	return name, rest, s.more(), nil
}

func unknown(s shape, at, key string) error {
	names := s.names()
	for i, name := range names {
		names[i] = at + name
	}
	list := "It takes none."
	if len(names) > 0 {
		list = "It takes: " + env.Line(strings.Join(names, ", ")) + "."
	}
	return env.Hint(fmt.Errorf("there is no argument %q", at+key), list)
}

// typed writes text as a JSON value of shape s.
func typed(s shape, place, text string) (json.RawMessage, error) {
	kinds := s.types()
	value, ok := typedAs(kinds, text)
	if ok && allowed(s.choices(), value) {
		return value, nil
	}
	shown := text
	if len(shown) > 60 {
		shown = env.Cut(shown, 60)
	}
	hint := ""
	if d := s.description(); d != "" {
		hint = place + ": " + env.Cut(env.Line(d), 200)
	}
	err := fmt.Errorf("argument %q is to be %s, and %q is not", place, env.Line(s.expected()), shown)
	if hint == "" {
		return nil, err
	}
	return nil, env.Hint(err, hint)
}

// typedAs tries the kinds, text last; any is JSON where it can be, else text.
func typedAs(kinds []string, text string) (json.RawMessage, bool) {
	has := func(kind string) bool { return slices.Contains(kinds, kind) }
	quoted := func() json.RawMessage { return wire.AppendString(nil, text) }
	if len(kinds) == 0 {
		if wire.Valid([]byte(text)) {
			return json.RawMessage(text), true
		}
		return quoted(), true
	}
	for _, kind := range []string{"null", "boolean", "integer", "number", "array", "object"} {
		if has(kind) && isOf(kind, text) {
			return json.RawMessage(text), true
		}
	}
	if has("string") {
		return quoted(), true
	}
	return nil, false
}

// isOf reports whether text is JSON of that type.
func isOf(kind, text string) bool {
	switch kind {
	case "null":
		return text == "null"
	case "boolean":
		return text == "true" || text == "false"
	case "integer":
		return isInteger(text)
	case "number":
		return isNumber(text)
	case "array":
		return strings.HasPrefix(text, "[") && wire.Valid([]byte(text))
	}
	return strings.HasPrefix(text, "{") && wire.Valid([]byte(text))
}

// isNumber reports whether text is a number as JSON writes it.
func isNumber(text string) bool {
	var n json.Number
	return json.Unmarshal([]byte(text), &n) == nil && n.String() == text
}

func isInteger(text string) bool {
	if !isNumber(text) {
		return false
	}
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && f == float64(int64(f)) || err == nil && !strings.ContainsAny(text, ".eE")
}

// allowed reports whether value is among choices, or there are none.
func allowed(choices []any, value json.RawMessage) bool {
	if len(choices) == 0 {
		return true
	}
	for _, c := range choices {
		if raw, err := json.Marshal(c); err == nil && string(raw) == string(value) {
			return true
		}
	}
	return false
}

// missing says which arguments are required and not there.
func missing(args json.RawMessage, s shape) error {
	object, err := wire.DecodeObject(args)
	if err != nil {
		return env.Hint(errors.New("the arguments are no JSON object"), argsHint)
	}
	var names, explained []string
	for _, name := range s.required() {
		if object.Get(name) != nil {
			continue
		}
		property, _ := s.property(name)
		names = append(names, strconv.Quote(name))
		line := fmt.Sprintf("%s=... is %s", env.Line(name), env.Line(property.expected()))
		if d := property.description(); d != "" {
			line += ": " + env.Cut(env.Line(d), 120)
		}
		explained = append(explained, line)
	}
	switch len(names) {
	case 0:
		return nil
	case 1:
		return env.Hint(fmt.Errorf("argument %s is missing", names[0]), explained[0])
	}
	return env.Hint(fmt.Errorf("arguments %s are missing", strings.Join(names, ", ")), strings.Join(explained, "\n"))
}
