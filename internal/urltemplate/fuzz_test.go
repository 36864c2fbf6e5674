// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package urltemplate

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzParse: whatever URL is accepted, a value of a placeholder changes
// nothing but the segment in which it stands.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"https://api.example.com/v1/{a}?x=1", "http://[::1]:80/{a}{b}/", "http://h/%7Ba%7D/{a}", "http://h", "http://h/{a}/..{b}", "http://h//{a}", "HTTP://H/{a}%2f", "http://h:/{a}", "http://h/{a}?",
	} {
		f.Add(seed, "v")
	}
	f.Add("http://h/{a}..", "%2e")
	f.Fuzz(func(t *testing.T, raw, value string) {
		template, err := Parse(raw)
		if err != nil {
			if len(err.Error()) > 200 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		fill := func(v string) (*url.URL, error) {
			return template.Fill(func(string) (string, error) { return v, nil }, "")
		}
		got, err := fill(value)
		if err != nil {
			return
		}
		plain, err := fill("v")
		if err != nil {
			t.Fatalf("%q takes %q and not v: %v", raw, value, err)
		}
		if got.Scheme != plain.Scheme || got.Host != plain.Host || got.User != nil || got.Fragment != "" || got.RawQuery != plain.RawQuery {
			t.Fatalf("%q makes of %q the URL %s", value, raw, got)
		}
		if a, b := strings.Count(got.EscapedPath(), "/"), strings.Count(plain.EscapedPath(), "/"); a != b {
			t.Fatalf("%q: %d segments with %q, %d with v", raw, a, value, b)
		}
		if len(got.String()) > MaxURL || strings.ContainsAny(got.String(), "\r\n\x00 ") {
			t.Fatalf("%q with %q gives %q", raw, value, got)
		}
	})
}
