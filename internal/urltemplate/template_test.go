// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package urltemplate

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]string{
		"https://api.example.com":                       "",
		"https://api.example.com/v1/{a}/{b}-{c}.json?x": "",
		"http://[::1]:8080/{a}":                         "",
		"ftp://example.com/":                            "must begin with http",
		"//example.com/":                                "must begin with http",
		"http:///x":                                     "no host",
		"http://u:p@example.com/":                       "credentials",
		"http://{a}@example.com/":                       "credentials",
		"http://{a}.example.com/":                       "only in the path",
		"http://example.com?q={a}":                      "only in the path",
		"http://example.com/#{a}":                       "fragment",
		"http://example.com/../x":                       "segments",
		"http://example.com/%2E%2e/x":                   "segments",
		"http://example.com/{}":                         "no valid name",
		"http://example.com/{a b}":                      "no valid name",
		"http://example.com/{a":                         "brace",
		"http://example.com/a\\b":                       "backslash",
		"http://exa mple.com/":                          "cannot be parsed",
		"http://example.com/?a=%zz":                     "query of the url",
	} {
		_, err := Parse(raw)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
	}
}

func FuzzFill(f *testing.F) {
	for _, seed := range []string{"../../admin", "a/b", "%2e%2e/", "\\..\\", "..;/", "\u2025", "a?b#c", "@x:80"} {
		f.Add(seed, "v")
	}
	template, err := Parse("https://api.example.com/v1/{a}-{b}/end?fixed=1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		u, err := template.Fill(func(name string) (string, error) { return map[string]string{"a": a, "b": b}[name], nil }, "")
		if err != nil {
			return
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if u.Scheme != "https" || u.Host != "api.example.com" || u.RawQuery != "fixed=1" || len(parts) != 4 || parts[1] != "v1" || parts[3] != "end" {
			t.Fatalf("%q, %q steer to %s", a, b, u)
		}
		if u.User != nil || u.Fragment != "" || strings.ContainsAny(u.String(), "\r\n\x00 ") {
			t.Fatalf("%q, %q give %q", a, b, u)
		}
	})
}
