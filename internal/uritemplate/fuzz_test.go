// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package uritemplate

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParse: what is accepted keeps its promises, and an error tells little of
// what it refuses.
func FuzzParse(f *testing.F) {
	f.Add("docs://{name}", "docs://a")
	f.Add("x:{+a}/{b,c}{?d}{&e}{#g}", "x:a/b/b,c?d=1&e=2#g")
	f.Add("db://{a}{a}", "db://")
	f.Add("x:{a:3}", "x:abc")
	f.Add("x:{%zz}", "x:%zz")
	f.Fuzz(func(t *testing.T, raw, uri string) {
		template, err := Parse(raw)
		if err != nil {
			if len(err.Error()) > 400 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		variables := template.Variables()
		if len(variables) == 0 || len(variables) > MaxVariables {
			t.Fatalf("%d variables", len(variables))
		}
		seen := map[string]bool{}
		for _, v := range variables {
			if seen[v] || !template.Has(v) {
				t.Fatalf("the variables %q", variables)
			}
			seen[v] = true
		}
		values, ok := template.Match(uri)
		if !ok {
			return
		}
		if len(uri) > MaxURI || len(values) > len(variables) {
			t.Fatalf("%q matches with %v", uri, values)
		}
		for name, value := range values {
			if !seen[name] || value == "" || len(value) > len(uri) {
				t.Fatalf("%q has %q = %q", uri, name, value)
			}
		}
	})
}

// FuzzMatch: the values that a URI was made of are found in it again.
func FuzzMatch(f *testing.F) {
	for _, value := range []string{"a", "a/b", "%2f", "ä", "..", "a b", "{x}", "\x00", "?#&=", "\xff", "漢"} {
		f.Add(value, "z")
	}
	template, err := Parse("docs://{first}/pages/{second}")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second string) {
		uri := "docs://" + encoded(first) + "/pages/" + encoded(second)
		values, ok := template.Match(uri)
		if !ok {
			if len(uri) <= MaxURI {
				t.Fatalf("%q, of %q and %q, does not match", uri, first, second)
			}
			return
		}
		if values["first"] != first || values["second"] != second {
			t.Fatalf("%q is of %q and %q, not of %q", uri, first, second, values)
		}
	})
}

// encoded writes a value as {name} has it: all but unreserved characters in
// percent.
func encoded(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
