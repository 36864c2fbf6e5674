// Copyright 2026 The Espalier Authors.
// SPDX-License-Identifier: Apache-2.0

package uritemplate

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		template, uri string
		want          map[string]string // nil: no match
	}{
		{"test://template/{id}/data", "test://template/123/data", map[string]string{"id": "123"}},
		{"test://template/{id}/data", "test://template/a%2Fb%20c/data", map[string]string{"id": "a/b c"}},
		{"test://template/{id}/data", "test://template/a/b/data", nil},
		{"test://template/{id}/data", "test://template/123/dat", nil},
		{"test://template/{id}/data", "test://template/123/data/x", nil},
		{"test://template/{id}/data", "xtest://template/123/data", nil},
		{"test://template/{id}/data", "test://template/%zz/data", nil},
		{"docs://{+path}", "docs://a/b/c.md", map[string]string{"path": "a/b/c.md"}},
		{"docs://x{/a,b}", "docs://x/1/2", map[string]string{"a": "1", "b": "2"}},
		{"docs://x{?q,n}", "docs://x?q=hi%20there&n=2", map[string]string{"q": "hi there", "n": "2"}},
		{"docs://x{?q,n}", "docs://x", map[string]string{}},
		{"docs://x/{a}-{b}", "docs://x/1-2", map[string]string{"a": "1", "b": "2"}},
	}
	for _, test := range tests {
		parsed, err := Parse(test.template)
		if err != nil {
			t.Fatalf("%s: %v", test.template, err)
		}
		got, ok := parsed.Match(test.uri)
		if ok != (test.want != nil) || ok && !cmp.Equal(test.want, got) {
			t.Errorf("%s with %s: %v, %v", test.template, test.uri, got, ok)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for template, want := range map[string]string{
		"{x}://a":                   "scheme",
		"/a/{x}":                    "scheme",
		"a://b":                     "no variable",
		"a://{x*}":                  "list",
		"a://{x:3}":                 "prefix",
		"a://{x}/{x}":               "twice",
		"a://{x.y}":                 "other characters",
		"a://{x":                    "RFC 6570",
		"a://x}{y}":                 "RFC 6570",
		"a://{!x}":                  "RFC 6570",
		"a://{}":                    "RFC 6570",
		"a://" + variables("q", 17): "17 variables",
	} {
		if _, err := Parse(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", template, err, want)
		}
	}
}

func variables(name string, n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("{" + name + strings.Repeat("x", i) + "}")
	}
	return b.String()
}

// TestHostile: what a caller sends takes no time that matters, from many at once.
func TestHostile(t *testing.T) {
	parsed, err := Parse("a://{a}{b}{c}{+d}{+e}/end")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, ok := parsed.Match("a://" + strings.Repeat("x/", MaxURI/2-10)); ok {
				t.Error("it matched")
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
	if _, ok := parsed.Match("a://" + strings.Repeat("x", MaxURI) + "/end"); ok {
		t.Error("a URI that is too long matched")
	}
}
