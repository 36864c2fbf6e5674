// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// findings of one CRD: where something is not as it was, and what.
type findings struct {
	where string
	list  []string
}

func (f *findings) add(path, format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf("%s %s: ", f.where, path)+fmt.Sprintf(format, args...))
}

// compare gives what the CRD now refuses, drops or takes for something else
// that it took before. now is nil for one that is gone.
func compare(before, now map[string]any) []string {
	f := &findings{where: nameOf(before)}
	if now == nil {
		f.add(".", "the CRD is gone")
		return f.list
	}
	old, next := object(before, "spec"), object(now, "spec")
	for _, key := range []string{"group", "scope"} {
		if old[key] != next[key] {
			f.add("."+key, "%v became %v", old[key], next[key])
		}
	}
	names(f, object(old, "names"), object(next, "names"))
	for _, version := range list(old, "versions") {
		v, _ := version.(map[string]any)
		compareVersion(f, v, versionOf(next, v["name"]))
	}
	return f.list
}

func names(f *findings, old, next map[string]any) {
	for _, key := range []string{"kind", "listKind", "plural", "singular"} {
		if old[key] != next[key] {
			f.add(".names."+key, "%v became %v", old[key], next[key])
		}
	}
	for _, key := range []string{"shortNames", "categories"} {
		for _, name := range list(old, key) {
			if !slices.Contains(list(next, key), name) {
				f.add(".names."+key, "%v is gone", name)
			}
		}
	}
}

func versionOf(spec map[string]any, name any) map[string]any {
	for _, version := range list(spec, "versions") {
		if v, ok := version.(map[string]any); ok && v["name"] == name {
			return v
		}
	}
	return nil
}

func compareVersion(f *findings, old, next map[string]any) {
	name := fmt.Sprint(old["name"])
	if next == nil {
		// The API server refuses a CRD without a version that is stored.
		f.add(name, "the version is gone")
		return
	}
	if old["served"] == true && next["served"] != true {
		f.add(name, "the version is not served any more")
	}
	for key, sub := range object(old, "subresources") {
		if !reflect.DeepEqual(sub, object(next, "subresources")[key]) {
			f.add(name, "subresource %s is another", key)
		}
	}
	compareSchema(f, name, object(old, "schema", "openAPIV3Schema"), object(next, "schema", "openAPIV3Schema"))
}

// same are keywords whose value must not change: types, what is merged how, and
// the default that an absent field stands for.
var same = []string{
	"type", "format", "nullable", "default", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource",
	"x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type", "allOf", "anyOf", "oneOf", "not", "multipleOf",
}

// mayAppear are those of same that may come where there was none: a default
// refuses nothing, and what may be null takes more.
var mayAppear = map[string]bool{"default": true, "nullable": true, "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-int-or-string": true}

// mayGo are those whose absence only takes more.
var mayGo = map[string]bool{"format": true, "allOf": true, "anyOf": true, "oneOf": true, "not": true, "multipleOf": true}

// lower and upper are bounds that may be loosened only.
var (
	lower = []string{"minimum", "minLength", "minItems", "minProperties"}
	upper = []string{"maximum", "maxLength", "maxItems", "maxProperties"}
)

func compareSchema(f *findings, path string, old, next map[string]any) {
	for _, key := range same {
		a, had := old[key]
		b, has := next[key]
		switch {
		case reflect.DeepEqual(a, b), !had && mayAppear[key], !has && mayGo[key]:
		case !had:
			f.add(path, "%s %v is new", key, b)
		case !has:
			f.add(path, "%s %v is gone", key, a)
		default:
			f.add(path, "%s %v became %v", key, a, b)
		}
	}
	compareBounds(f, path, old, next)
	compareValues(f, path, old, next)
	compareRules(f, path, old, next)
	compareRequired(f, path, old, next)
	fields := object(next, "properties")
	for _, name := range slices.Sorted(maps.Keys(object(old, "properties"))) {
		field, _ := fields[name].(map[string]any)
		if field == nil {
			f.add(path+"."+name, "the field is gone")
			continue
		}
		compareSchema(f, path+"."+name, object(old, "properties", name), field)
	}
	for _, key := range []string{"items", "additionalProperties"} {
		a, isSchema := old[key].(map[string]any)
		b, stillSchema := next[key].(map[string]any)
		switch {
		case isSchema && stillSchema:
			compareSchema(f, path+"[]", a, b)
		case !reflect.DeepEqual(old[key], next[key]):
			f.add(path, "%s is another", key)
		}
	}
}

func compareBounds(f *findings, path string, old, next map[string]any) {
	bound := func(key string, tighter func(a, b float64) bool) {
		b, has := number(next[key])
		a, had := number(old[key])
		switch {
		case has && !had:
			f.add(path, "%s %v is new", key, b)
		case has && tighter(a, b):
			f.add(path, "%s %v became %v", key, a, b)
		}
	}
	for _, key := range lower {
		bound(key, func(a, b float64) bool { return b > a })
	}
	for _, key := range upper {
		bound(key, func(a, b float64) bool { return b < a })
	}
	for _, key := range []string{"exclusiveMinimum", "exclusiveMaximum", "uniqueItems"} {
		if next[key] == true && old[key] != true {
			f.add(path, "%s is new", key)
		}
	}
}

// compareValues: no string that a pattern or an enum took may be refused.
func compareValues(f *findings, path string, old, next map[string]any) {
	if b, ok := next["pattern"]; ok && b != old["pattern"] {
		f.add(path, "pattern %v became %v", old["pattern"], b)
	}
	if b := list(next, "enum"); b != nil {
		a := list(old, "enum")
		if a == nil {
			f.add(path, "enum is new")
		}
		for _, value := range a {
			if !slices.Contains(b, value) {
				f.add(path, "enum lacks %v", value)
			}
		}
	}
}

// compareRules: no CEL rule may be new or another. What a changed one takes
// cannot be told here.
func compareRules(f *findings, path string, old, next map[string]any) {
	for _, rule := range list(next, "x-kubernetes-validations") {
		text := object(map[string]any{"": rule}, "")["rule"]
		known := slices.ContainsFunc(list(old, "x-kubernetes-validations"), func(other any) bool {
			return object(map[string]any{"": other}, "")["rule"] == text
		})
		if !known {
			f.add(path, "rule %v is new", text)
		}
	}
}

// compareRequired: a field that becomes required must have a default.
func compareRequired(f *findings, path string, old, next map[string]any) {
	for _, name := range list(next, "required") {
		if slices.Contains(list(old, "required"), name) {
			continue
		}
		if _, ok := object(next, "properties", fmt.Sprint(name))["default"]; !ok {
			f.add(path+"."+fmt.Sprint(name), "the field is required now")
		}
	}
}

func object(v map[string]any, path ...string) map[string]any {
	for _, key := range path {
		v, _ = v[key].(map[string]any)
	}
	return v
}

func list(v map[string]any, key string) []any {
	out, _ := v[key].([]any)
	return out
}

func number(v any) (float64, bool) {
	n, ok := v.(float64)
	return n, ok
}
